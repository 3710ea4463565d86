"""What a task does while it is alone in Postgres is whole or nothing, also where the task is cancelled."""

import asyncio
import contextlib
import threading

import numpy as np
import pytest

from memstory_reference.composition.vector_stores import open_exact_schema
from memstory_reference.ports import Record
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import PostgresDatabase

ROW = Record(id="a", text="tea", vector=np.array((1, 0), np.float32))


@pytest.fixture
async def opened(postgres_database):
    """Open the store once more; all are closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def opened():
            store = await open_exact_schema(PostgresPlace(url=postgres_database, schema="vectors"), model="fixed")
            stack.push_async_callback(store.close)
            return store

        yield opened


async def test_after_a_task_is_cancelled_while_it_begins_to_be_alone_others_writes_are_seen(opened, monkeypatch):
    store, other = await opened(), await opened()
    begun, go_on, real = threading.Event(), threading.Event(), PostgresDatabase.transaction

    @contextlib.contextmanager
    def transaction(database, *owners):
        with real(database, *owners):
            begun.set()
            assert go_on.wait(30)
            yield

    async def be_alone():
        async with store.alone("ann"):
            raise AssertionError("it was cancelled before")

    monkeypatch.setattr(PostgresDatabase, "transaction", transaction)
    task = asyncio.create_task(be_alone())
    assert await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    await asyncio.wait([task], timeout=0.1)
    go_on.set()
    monkeypatch.undo()
    error = None
    try:
        await task
    except asyncio.CancelledError as cancelled:
        error = cancelled
    await (await store.index("notes", "ann")).upsert([ROW])
    assert await (await other.index("notes", "ann")).count() == 1
    assert error  # until here: with it goes all that the task had, so that nothing is let go of by chance


@pytest.mark.parametrize("end", ["rolled back", "cancelled"])
async def test_the_length_of_vectors_that_were_never_stored_binds_nobody(opened, end):
    store = await opened()
    with contextlib.suppress(RuntimeError, asyncio.CancelledError):
        async with store.alone("ann"):
            index = await store.index("notes", "ann")
            await index.upsert([ROW])
            assert len(await index.query(ROW.vector, 1)) == 1
            raise RuntimeError if end == "rolled back" else asyncio.CancelledError
    longer = Record(id="b", text="tea", vector=np.array((0, 0, 1), np.float32))
    other = await store.index("notes", "bob")
    await other.upsert([longer])
    assert [one.record.id for one in await other.query(longer.vector, 1)] == ["b"]
    again = await opened()
    assert again.dimension == 3


async def test_others_do_not_learn_the_length_of_vectors_that_may_never_be_stored(opened):
    store = await opened()
    index = await store.index("notes", "ann")
    with contextlib.suppress(RuntimeError):
        async with store.alone("ann"):
            await index.upsert([ROW])
            await index.query(ROW.vector, 1)
            assert await asyncio.create_task(index.query(np.ones(3, np.float32), 1)) == []
            raise RuntimeError
    assert await index.query(np.ones(3, np.float32), 1) == []
