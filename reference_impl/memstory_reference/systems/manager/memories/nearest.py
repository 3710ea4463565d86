"""The nearest rows that are wanted, and of two statements of one profile field the newer first (M-16, MF-4, MF-16)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memstory_reference.ports import Primitive, VectorIndex
from memstory_reference.systems.manager.memories.memory import Memory, MemoryType, SearchResult, score_of
from memstory_reference.systems.manager.memories.rows import memory_of

IsWanted = Callable[[Memory], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What is wanted of the rows looked at; `lowest` is the score that no other row can exceed."""

    wanted: Sequence[SearchResult]
    lowest: float


async def nearest_memories(
    index: VectorIndex,
    vector: NDArray[np.float32],
    *,
    limit: int,
    floor: float,
    conditions: Mapping[str, Primitive] | None,
    is_wanted: IsWanted,
    ahead: int = 0,
) -> list[SearchResult]:
    """Return up to `limit` wanted memories at or above `floor`, best first, of equal scores the newer first.

    If `ahead` is not 0, so many rows are looked at first without `conditions`, which `is_wanted` must then imply.
    """
    if ahead:
        looked = await _look(index, vector, ahead, None, is_wanted)
        if len(looked.wanted) >= limit or looked.lowest < floor:
            return _best(looked.wanted, limit, floor)
    fetch = limit
    while True:
        looked = await _look(index, vector, fetch, conditions, is_wanted)
        if len(looked.wanted) >= limit or looked.lowest < floor:
            return _best(looked.wanted, limit, floor)
        # What is not wanted must take no place: the search goes wider until it has met the limit or the floor.
        fetch *= 2


async def _look(
    index: VectorIndex,
    vector: NDArray[np.float32],
    fetch: int,
    conditions: Mapping[str, Primitive] | None,
    is_wanted: IsWanted,
) -> _Look:
    matches = await index.query(vector, fetch, conditions)
    wanted = [
        SearchResult(memory=memory, score=score_of(match.similarity))
        for match in matches
        if (memory := memory_of(match.record)) and is_wanted(memory)
    ]
    # Where there are no other rows that is below any floor.
    return _Look(wanted=wanted, lowest=-math.inf if len(matches) < fetch else score_of(matches[-1].similarity))


def _best(results: Sequence[SearchResult], limit: int, floor: float) -> list[SearchResult]:
    high = (result for result in results if result.score >= floor)
    return sorted(high, key=lambda result: (-result.score, -result.memory.created_at.timestamp()))[:limit]


CATEGORY, PROFILE, FIELD = "category", "user_profile", "field"


def newest_of_each_field_first(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Return the results, statements of one profile field in their places by age, the newest first.

    The older ones stay: a field such as the interests may hold several.
    """
    newest: dict[str, list[SearchResult]] = {}
    for result in sorted(results, key=lambda one: one.memory.created_at):
        if (field := field_of(result)) is not None:
            newest.setdefault(field, []).append(result)
    fields = (field_of(result) for result in results)
    return [result if field is None else newest[field].pop() for result, field in zip(results, fields, strict=True)]


def field_of(result: SearchResult) -> str | None:
    """Return the profile field that a fact states, if it states one."""
    metadata = result.memory.metadata
    field = metadata.get(FIELD)
    is_stated = result.memory.memory_type is MemoryType.FACT and metadata.get(CATEGORY) == PROFILE
    return field if is_stated and isinstance(field, str) else None
