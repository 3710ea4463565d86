from __future__ import annotations

import numpy as np
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.ports import Record
from memstory_reference.targets.environment_ports import FaultSwitch, FaultyVectorStore


@pytest.fixture
def switch():
    return FaultSwitch("store", slow_seconds=0.001)


@pytest.fixture
async def store(switch):
    store = FaultyVectorStore(ExactStore(model="fixed"), switch)
    yield store
    await store.close()


async def test_store_that_is_down_fails_in_every_operation_of_an_open_index(store, switch):
    index = await store.index("memories", "ann")
    await index.upsert([Record(id="a", text="a", vector=[1.0, 0.0])])
    switch.mode = "down"
    vector = np.array([1, 0], dtype=np.float32)
    operations = (
        lambda: index.upsert([]),
        lambda: index.get(["a"]),
        lambda: index.query(vector, 1),
        index.list,
        lambda: index.delete(["a"]),
        index.count,
        lambda: store.index("memories", "bob"),
        lambda: store.owners("memories"),
    )
    for operation in operations:
        with pytest.raises(UnavailableError):
            await operation()
    switch.mode = "ok"
    assert [record.id for record in await index.get(["a"])] == ["a"]


async def test_garbage_of_the_store_finds_nothing(store, switch):
    index = await store.index("memories", "ann")
    await index.upsert([Record(id="a", text="a", vector=[1.0, 0.0])])
    vector = np.array([1, 0], dtype=np.float32)
    assert len(await index.query(vector, 1)) == 1
    switch.mode = "garbage"
    assert not await index.query(vector, 1)


async def test_nothing_stands_before_a_store_that_has_no_fault(switch):
    inner = ExactStore(model="fixed")
    store = FaultyVectorStore(inner, switch)
    assert store.owners == inner.owners
    switch.mode = "slow"
    assert store.owners != inner.owners
    await store.close()
