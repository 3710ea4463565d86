"""What an operator may decide about the layers memory; the constants that the source leaves open (CF-7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta

from memstory_reference.errors import InputError
from memstory_reference.ports import Json

_RANGES = {
    "idle_minutes": (1, 10_080),
    "episodic_days": (1, 3_650),
    "repetitions": (2, 100),
    "substantive_turns": (1, 1_000),
    "substantive_tokens": (1, 100_000),
    "rule_cap": (1, 500),
    "crisis_retention_days": (1, 36_500),
    "support": (0.0, 1.0),
    "duplicate": (0.0, 1.0),
    "top_k": (1, 1_000),
    "episodes": (0, 100),
    "min_similarity": (-1.0, 1.0),
    "min_recall": (0.0, 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersConfig:
    """`support` is the share of an object's tokens that must recur; `duplicate` the Jaccard index of near-duplicates.

    `top_k` facts and `episodes` sessions go into a turn, and all active rules; `recall` governs reading alone (CF-8).
    Below `min_similarity` and, where there are vectors, below `min_recall` a record is in neither list of the fusion.
    """

    idle_minutes: float = 20
    episodic_days: float = 30
    repetitions: int = 2
    substantive_turns: int = 3
    substantive_tokens: int = 30
    rule_cap: int = 20
    crisis_retention_days: float = 90
    support: float = 0.5
    duplicate: float = 0.85
    top_k: int = 8
    episodes: int = 3
    min_similarity: float = 0.3
    min_recall: float = 0.7
    recall: bool = True

    @property
    def idle(self) -> timedelta:
        """How long a session may be silent before it ends."""
        return timedelta(minutes=self.idle_minutes)

    @property
    def episodic_age(self) -> timedelta:
        """How old a session may be to be found by a question."""
        return timedelta(days=self.episodic_days)

    def changed(self, values: Mapping[str, Json], where: str) -> LayersConfig:
        """Return this configuration with `values` in place; InputError names the key and what is allowed."""
        for key, value in values.items():
            _check(key, value, where, is_whole=key in _RANGES and isinstance(getattr(self, key), int))
        return replace(self, **values)


def _check(key: str, value: Json, where: str, *, is_whole: bool) -> None:
    if key == "recall":
        if not isinstance(value, bool):
            raise InputError(f"{where}: recall is {value!r:.80}; allowed: true, false")
        return
    if key not in _RANGES:
        known = ", ".join(field.name for field in fields(LayersConfig))
        raise InputError(f"{where}: unknown setting {key!r:.80}; known: {known}")
    low, high = _RANGES[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    # The minutes and days may be fractions though their defaults are whole.
    whole = is_whole and not key.endswith(("_minutes", "_days"))
    if not is_number or not low <= value <= high or (whole and not isinstance(value, int)):
        raise InputError(f"{where}: {key} is {value!r:.80}; allowed: {low:g} to {high:g}")
