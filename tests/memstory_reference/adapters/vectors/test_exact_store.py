import asyncio
import sqlite3
from contextlib import closing, suppress
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.exact_store import (
    EMBEDDED_FILE,
    FILE,
    INDEXES,
    SCHEMA,
    ExactStore,
    is_sound,
    open_exact_file,
)
from memstory_reference.ports import Record
from memstory_reference.storage import held_rows
from memstory_reference.storage.reindexing import reindex
from memstory_reference.storage.sql_database import IN_MEMORY, Database

EXECUTE, EXECUTEMANY = Database.execute, Database.executemany


def _write_then_fail(database, sql, rows):
    EXECUTEMANY(database, sql, rows)
    if " rows " in sql:
        raise RuntimeError


def _delete_then_fail(database, sql, parameters=()):
    found = EXECUTE(database, sql, parameters)
    if sql.startswith("DELETE"):
        found.fetchall()
        raise RuntimeError
    return found


async def test_longest_unused_owner_leaves_memory_and_is_found_again(rows_of, spread, monkeypatch):
    monkeypatch.setattr(held_rows, "HELD_ROWS", 50)
    store = ExactStore(model="fixed")
    for owner in ("ana", "bob", "cid"):
        index = await store.index("memory", owner)
        await index.upsert(rows_of(spread(20)))
        await index.query(spread(1)[0], 1)
    assert [one for one in ("ana", "bob", "cid") if ("memory", one) in store.held._held] == ["bob", "cid"]
    again = await store.index("memory", "ana")
    assert (await again.query(spread(20)[5], 1))[0].record.id == "r0005"
    await store.close()


async def test_write_that_fails_changes_neither_the_file_nor_memory(rows_of, spread, monkeypatch):
    store = ExactStore(model="fixed")
    index = await store.index("memory", "ana")
    await index.upsert(rows_of(spread(4)))
    await index.query(spread(1)[0], 1)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "executemany", _write_then_fail)
        with pytest.raises(RuntimeError):
            await index.upsert(rows_of(spread(4, seed=3), prefix="n"))
        patched.setattr(Database, "execute", _delete_then_fail)
        with pytest.raises(RuntimeError):
            await index.delete(["r0000"])
    assert await index.count() == 4
    found = await index.query(spread(4)[0], 9)
    assert sorted(match.record.id for match in found) == [f"r{n:04}" for n in range(4)]
    await store.close()


STEPS = st.tuples(
    st.sampled_from([0, 1]),
    st.sampled_from(["upsert", "delete", "query", "fail"]),
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(st.lists(STEPS, min_size=5, max_size=30))
def test_two_stores_over_one_database_find_what_is_in_it_whoever_wrote_or_failed_to(steps):
    async def play():
        database, kept = Database(IN_MEMORY, schema=SCHEMA), {}
        indexes = [await ExactStore(database, model="fixed").index("memory", "ana") for _ in (0, 1)]
        for place, does, row, axis in steps:
            index, vector = indexes[place], np.eye(4, dtype=np.float32)[axis]
            record = Record(id=str(row), text=str(axis), metadata={"is": "row"}, vector=vector)
            if does == "query":
                found = await index.query(vector, 9, {"is": "row"})
                assert {one.record.id: one.record.text for one in found} == kept
                assert {one.record.id for one in found if one.similarity == 1} == {
                    one for one, text in kept.items() if text == str(axis)
                }
            elif does == "delete":
                assert await index.delete([record.id]) == [one for one in [record.id] if kept.pop(one, None)]
            else:
                write = _write_then_fail if does == "fail" else EXECUTEMANY
                with mock.patch.object(Database, "executemany", write), suppress(RuntimeError):
                    await index.upsert([record])
                    kept[record.id] = record.text
        database.close()

    asyncio.run(play())


async def test_deleted_text_is_in_no_file(tmp_path, rows_of, spread):
    store = open_exact_file(tmp_path / FILE, model="fixed")
    index = await store.index("memory", "ana")
    await index.upsert(rows_of(spread(5), prefix="a-secret-of-mine"))
    assert any(b"a-secret-of-mine" in file.read_bytes() for file in tmp_path.iterdir())
    await index.delete([f"a-secret-of-mine{n:04}" for n in range(5)])
    assert not any(b"a-secret-of-mine" in file.read_bytes() for file in tmp_path.iterdir())
    await store.close()


async def test_owner_whose_first_write_fails_sees_nobody_else(rows_of, spread, monkeypatch):
    store = ExactStore(model="fixed")
    ana, bob = await store.index("memory", "ana"), await store.index("memory", "bob")
    with monkeypatch.context() as patched:
        patched.setattr(Database, "executemany", _write_then_fail)
        with pytest.raises(RuntimeError):
            await ana.upsert(rows_of(spread(4)))
    await bob.upsert(rows_of(spread(4)))
    assert (await ana.count(), list(await ana.list())) == (0, [])
    assert list(await store.owners("memory")) == ["bob"]
    await store.close()


async def test_names_that_were_only_asked_for_leave_nothing_behind(rows_of, spread):
    store = ExactStore(model="fixed")
    await (await store.index("memory", "ana")).upsert(rows_of(spread(4)))
    for number in range(300):
        ghost = await store.index("memory", f"ghost {number}")
        assert (await ghost.query(spread(1)[0], 1), await ghost.count(), await ghost.delete(["r0000"])) == ([], 0, [])
    ana = await store.index("memory", "ana")
    assert len(await ana.query(spread(4)[0], 9)) == 4
    assert [one for one in ("ana", "bob") if ("memory", one) in store.held._held] == ["ana"]
    await store.close()


async def test_two_handles_of_a_new_owner_see_each_others_rows(rows_of, spread):
    store = ExactStore(model="fixed")
    one, other = await store.index("memory", "ana"), await store.index("memory", "ana")
    assert (await one.count(), await other.count()) == (0, 0)
    await one.upsert(rows_of(spread(4)))
    assert (await other.count(), len(await other.query(spread(4)[0], 9))) == (4, 4)
    await store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM about WHERE name = 'model'",
        "DELETE FROM about WHERE name = 'dimension'",
        "DELETE FROM about",
        "UPDATE about SET value = 'x' WHERE name = 'dimension'",
    ],
)
async def test_a_file_that_lost_the_model_of_its_vectors_is_one_clear_error_and_can_be_embedded_again(
    tmp_path, filled, damage
):
    store, _ = await filled(tmp_path)
    await store.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(UnavailableError, match=f"{FILE}.*which model.*restore a backup"):
        open_exact_file(tmp_path / FILE, model="fixed")
    assert not is_sound(tmp_path / FILE)

    class Fixed:
        model, dimension = "fixed", 8

        async def embed(self, texts, purpose):
            return np.eye(8, dtype=np.float32)[[0] * len(texts)]

    assert await reindex(tmp_path, [EMBEDDED_FILE], INDEXES, Fixed()) == 30
    assert is_sound(tmp_path / FILE)
    again = open_exact_file(tmp_path / FILE, model="fixed")
    assert again.dimension == 8
    await again.close()


async def test_a_row_that_cannot_be_read_is_left_out_of_searches_named_and_can_be_forgotten(tmp_path, filled, caplog):
    store, index = await filled(tmp_path)
    store._db.execute("UPDATE rows SET metadata = '{' WHERE id = 'r0003'")
    (row,) = await index.get(["r0003"])
    assert (row.text, row.metadata) == ("", {})
    assert f"{FILE}: the row 'r0003' is damaged and left out" in caplog.text
    assert await index.delete(["r0003"]) == ["r0003"]
    assert len(await index.list()) == 29
    await store.close()
