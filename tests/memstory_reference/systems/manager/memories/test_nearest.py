from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.ports import Match, Record
from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.memories.nearest import nearest_memories

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
VECTOR = np.array([1, 0], np.float32)
ROWS = st.lists(
    st.tuples(
        st.integers(-100, 100).map(lambda hundredths: hundredths / 100), st.sampled_from(MemoryType), st.booleans()
    ),
    max_size=40,
)


class Index:
    """Rows by similarity, with and without a filter on the type; it notes how it was asked."""

    def __init__(self, rows):
        ordered = sorted(enumerate(rows), key=lambda row: (-row[1][0], row[0]))
        self.matches = [self.match(number, *row) for number, row in ordered]
        self.asked = []

    def match(self, number, similarity, memory_type, is_alive):
        metadata = {"type": memory_type.value, "created_at": NOON.isoformat(), "is_alive": is_alive}
        return Match(record=Record(id=f"{number:03d}", text="x", metadata=metadata), similarity=similarity)

    async def query(self, vector, k, where=None):
        self.asked.append((k, where))
        fitting = (one for one in self.matches if (where or {}).items() <= one.record.metadata.items())
        return [one for _, one in zip(range(k), fitting, strict=False)]


async def search(index, memory_type, limit, floor, ahead):
    found = await nearest_memories(
        index,
        VECTOR,
        limit=limit,
        floor=floor,
        conditions={"type": memory_type.value} if memory_type else None,
        is_wanted=lambda one: memory_type in (None, one.memory_type) and one.metadata["is_alive"],
        ahead=ahead,
    )
    return [(one.memory.id, one.score) for one in found]


@given(
    rows=ROWS,
    memory_type=st.none() | st.sampled_from(MemoryType),
    limit=st.integers(1, 8),
    floor=st.sampled_from([-1.0, 0.0, 0.3, 0.99]),
    is_ahead=st.booleans(),
)
async def test_the_wanted_are_found_as_if_nothing_else_were_there(rows, memory_type, limit, floor, is_ahead):
    ahead = 4 * limit if is_ahead and memory_type else 0
    alone = [
        (f"{number:03d}", max(0.0, similarity))
        for number, (similarity, kind, is_alive) in enumerate(rows)
        if is_alive and memory_type in (None, kind) and max(0.0, similarity) >= floor
    ]
    found = await search(Index(rows), memory_type, limit, floor, ahead)
    assert [score for _, score in found] == sorted((score for _, score in alone), reverse=True)[:limit]
    assert set(found) <= set(alone)


@pytest.mark.parametrize(
    ("types", "asked"),
    [
        ([MemoryType.FACT] * 10, [(8, None)]),
        ([MemoryType.CONTEXT] * 100 + [MemoryType.FACT] * 2, [(8, None), (2, {"type": "fact"})]),
    ],
    ids=["common", "rare"],
)
async def test_a_type_is_filtered_by_the_store_only_where_the_nearest_hold_too_few(types, asked):
    index = Index([(0.9, memory_type, True) for memory_type in types])
    assert len(await search(index, MemoryType.FACT, 2, 0.3, 8)) == 2
    assert index.asked == asked


async def test_nothing_wider_is_asked_once_the_floor_is_met():
    index = Index([(0.9, MemoryType.FACT, False), *[(0.1, MemoryType.FACT, True)] * 100])
    assert await search(index, None, 2, 0.3, 0) == []
    assert index.asked == [(2, None)]
