"""A damaged file of the manager's rows, which exist nowhere else, is reported in words."""

import random
import sqlite3
from contextlib import closing, suppress

import pytest

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory_reference.adapters.vectors.chroma import open_chroma
from memstory_reference.systems.manager.memories.memory import MemoryType

FACTS = 30


@pytest.fixture
async def folder(make_world, tmp_path):
    world = make_world(store=await open_chroma(tmp_path, model="words"))
    for number in range(FACTS):
        await world.manager.store("ann", f"fact number {number}", MemoryType.FACT, {"note": "n" * 200})
    await world.store.close()
    return tmp_path


@pytest.mark.parametrize("seed", range(12))
async def test_damage_is_an_answer_or_an_error_in_words(make_world, folder, seed):
    at, file = random.Random(seed), folder / "vectors.sqlite3"  # noqa: S311  (no secret)
    content = bytearray(file.read_bytes())
    place = at.randrange(len(content) - 400)
    content[place : place + 400] = at.randbytes(400)
    file.write_bytes(content)
    with suppress(MemstoryError):
        world = make_world(store=await open_chroma(folder, model="words"))
        calls = (
            lambda: world.manager.search("ann", "fact number 3"),
            lambda: world.manager.memories("ann"),
            world.manager.cleanup_expired,
            lambda: world.manager.store("ann", "another", MemoryType.FACT),
        )
        for call in calls:
            with suppress(MemstoryError):
                await call()
        await world.store.close()


async def test_a_row_that_cannot_be_read_is_named(make_world, folder):
    with closing(sqlite3.connect(folder / "vectors.sqlite3")) as rows, rows:
        rows.execute("UPDATE rows SET metadata = '{' WHERE text = 'fact number 3'")
    world = make_world(store=await open_chroma(folder, model="words"))
    with pytest.raises(UnavailableError, match="is damaged"):
        await world.manager.search("ann", "fact number 4")
    await world.store.close()
