"""What an operator may decide about the observations memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from memstory_reference.errors import InputError
from memstory_reference.ports import Json

_RANGES = {"top_k": (1, 1_000), "min_sim": (-1, 1), "rating_min": (-100, 0), "rating_max": (0, 100)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsConfig:
    """`min_sim` is the cosine below which only keywords admit an observation; ratings lie within their two limits."""

    top_k: int = 3
    min_sim: float = 0.30
    rating_min: float = -2.0
    rating_max: float = 2.0

    def changed(self, values: Mapping[str, Json], where: str) -> ObservationsConfig:
        """Return this configuration with `values` in place; InputError names the key and what is allowed."""
        for key, value in values.items():
            if key not in _RANGES:
                raise InputError(f"{where}: unknown setting {key!r:.80}; known: {', '.join(_RANGES)}")
            low, high = _RANGES[key]
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or not low <= value <= high or (key == "top_k" and not isinstance(value, int)):
                raise InputError(f"{where}: {key} is {value!r:.80}; allowed: {low} to {high}")
        return replace(self, **values)
