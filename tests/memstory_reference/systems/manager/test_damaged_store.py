"""A damaged file of the manager's rows, which exist nowhere else, leaves out what cannot be read."""

import sqlite3
from contextlib import closing

import pytest

from memstory.contract.target import Ref, Scope
from memstory_reference.adapters.vectors.exact_store import open_exact_folder
from memstory_reference.systems.manager.memories import MemoryType

FACTS = 30


@pytest.fixture
async def folder(make_world, tmp_path):
    world = make_world(store=open_exact_folder(tmp_path, model="words"))
    for number in range(FACTS):
        await world.manager.store("ann", f"fact number {number}", MemoryType.FACT, {"note": "n" * 200})
    await world.store.close()
    return tmp_path


async def test_a_row_that_cannot_be_read_is_left_out_and_named(make_world, folder, caplog):
    with closing(sqlite3.connect(folder / "vectors.sqlite3")) as rows, rows:
        rows.execute("UPDATE rows SET metadata = '{' WHERE text = 'fact number 3'")
    world = make_world(store=open_exact_folder(folder, model="words"))
    assert "fact number 4" in [
        one.memory.content for one in await world.manager.search_memories("ann", "fact number 4")
    ]
    assert await world.manager.unreadable("ann") == 1
    assert "is damaged and left out" in caplog.text
    assert await world.manager.delete(Ref(), Scope(user="ann"))
    assert await world.manager.count("ann") == 0
    await world.store.close()
