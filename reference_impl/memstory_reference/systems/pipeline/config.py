"""What an operator may decide about the pipeline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from memstory_reference.errors import InputError
from memstory_reference.ports import Json

_RANGES: Mapping[str, tuple[float, float]] = {
    "max_chunk_tokens": (1, 100_000),
    "min_chunk_tokens": (0, 100_000),
    "max_text_characters": (1, 100_000_000),
    "store_threshold": (0, 1),
    "recall_threshold": (0, 1),
    "candidates_factor": (1, 100),
    "max_procedural": (0, 1_000),
    "working_hours": (0, 100_000),
    "compression_threshold": (1, 1_000_000),
    "sessions_to_compress": (1, 1_000_000),
    "cached_embeddings": (0, 10_000_000),
}
_WHOLE = frozenset(_RANGES) - {"store_threshold", "recall_threshold", "working_hours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """The numbers of seed 002 and what it leaves open (PF-2, PF-7, PF-11, PF-15, PF-17).

    `recall_threshold` acts on rows that were imported or stored under another `store_threshold`; working memories are
    recalled without their session for `working_hours`; `sessions_to_compress` of None is half the threshold;
    `cached_embeddings` are kept for each user beside those of stored memories.
    """

    max_chunk_tokens: int = 300
    min_chunk_tokens: int = 50
    max_text_characters: int = 1_000_000
    store_threshold: float = 0.3
    recall_threshold: float = 0.2
    candidates_factor: int = 4
    reranker_enabled: bool = False
    max_procedural: int = 10
    working_hours: float = 24.0
    compression_threshold: int = 10
    sessions_to_compress: int | None = None
    auto_compress: bool = True
    episodic_date_prefix: bool = False
    cached_embeddings: int = 10_000

    @property
    def sessions_a_pass(self) -> int:
        """How many sessions one pass compresses: 5 of 10, 2 of 5, 1 of 3, 1 of 1."""
        return self.sessions_to_compress or max(1, self.compression_threshold // 2)

    def changed(self, values: Mapping[str, Json], where: str) -> PipelineConfig:
        """Return this configuration with `values` in place; InputError names the key and what is allowed."""
        known = [one.name for one in fields(self)]
        for key, value in values.items():
            if key not in known:
                raise InputError(f"{where}: unknown setting {key!r:.80}; known: {', '.join(known)}")
            _check(key, value, where)
        made = replace(self, **values)
        if made.min_chunk_tokens > made.max_chunk_tokens:
            raise InputError(
                f"{where}: min_chunk_tokens is {made.min_chunk_tokens}, more than max_chunk_tokens, "
                f"{made.max_chunk_tokens}; lower one or raise the other"
            )
        return made


def _check(key: str, value: Json, where: str) -> None:
    if key not in _RANGES:
        if not isinstance(value, bool):
            raise InputError(f"{where}: {key} is {value!r:.80}; allowed: true, false")
        return
    if key == "sessions_to_compress" and value is None:
        return
    low, high = _RANGES[key]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high or (key in _WHOLE and not isinstance(value, int)):
        kind = "whole numbers" if key in _WHOLE else "numbers"
        raise InputError(f"{where}: {key} is {value!r:.80}; allowed: {kind} from {low} to {high}")
