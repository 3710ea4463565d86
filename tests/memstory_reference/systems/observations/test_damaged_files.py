"""A damaged store says so in words, or mends itself: the vectors are made again from the rows."""

import random
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from memstory.contract.target import Ref, Scope
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.observations import open_observations
from memstory_reference.systems.observations.observations_store import EMBEDDED_FILE
from memstory_reference.systems.observations.settings import ObservationsSettings

ANN = Scope(user="ann")

RUNS = 30


class Noon:
    def now(self):
        return datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def open_folder(tmp_path, words):
    def opened():
        ports = MemoryPorts(embedder=words, clock=Noon(), new_id=str)
        return open_observations(ObservationsSettings(path=str(tmp_path / "store")), ports)

    return opened


@pytest.fixture
async def folder(open_folder, tmp_path, run_of):
    memory = await open_folder()
    facts = ("a fact " * 20,) * 5
    await memory.store([run_of(f"r{n}", f"Covered subject{n}.", facts=facts) for n in range(RUNS)], "ann")
    await memory.close()
    return tmp_path / "store"


async def all_found(open_folder):
    memory = await open_folder()
    found = [(await memory.find(f"Covered subject{n}", "ann", 1))[0].observation.id for n in range(RUNS)]
    status = await memory.inspect("status", {}, ANN)
    await memory.close()
    return found == [f"r{n}" for n in range(RUNS)] and status["vectors"] == RUNS


def damage(file, seed):
    at = random.Random(seed)  # noqa: S311  (no secret)
    content = bytearray(file.read_bytes())
    for _ in range(3):
        place = at.randrange(max(1, len(content) - 200))
        content[place : place + 200] = at.randbytes(200)
    file.write_bytes(content)


async def test_vectors_that_are_gone_are_made_again(open_folder, folder):
    shutil.rmtree(folder / "vectors")
    assert await all_found(open_folder)


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
async def test_vectors_that_are_no_database_are_made_again(open_folder, folder, content, caplog):
    (folder / "vectors" / "vectors.sqlite3").write_bytes(content)
    assert await all_found(open_folder)
    # An empty file is an empty store, which is filled from the rows.
    assert ("made again" in caplog.text) is bool(content)


@pytest.mark.parametrize("seed", range(12))
async def test_damaged_vectors_answer_or_are_made_again(open_folder, folder, seed):
    damage(folder / "vectors" / "vectors.sqlite3", seed)
    memory = await open_folder()
    for number in range(RUNS):
        await memory.find(f"Covered subject{number}", "ann", 1)
    # What was altered within a vector is not noticed, and made again on demand.
    assert await memory.run("reindex", {}, ANN) == {"reindexed": RUNS}
    await memory.close()
    assert await all_found(open_folder)


async def test_a_vector_that_was_changed_is_made_again(open_folder, folder):
    with closing(sqlite3.connect(folder / "vectors" / "vectors.sqlite3")) as rows, rows:
        rows.execute("UPDATE rows SET metadata = '{' WHERE id = 'r3'")
        rows.execute("UPDATE rows SET vector = zeroblob(7) WHERE id = 'r4'")
        rows.execute("DELETE FROM rows WHERE id = 'r5'")
    assert await all_found(open_folder)


@pytest.mark.parametrize("damage", ["facts = '['", "narrative = x'00'", "task_type = x'00'", "rating = 'good'"])
async def test_a_row_that_cannot_be_read_is_left_out_and_named(open_folder, folder, damage, caplog):
    with closing(sqlite3.connect(folder / EMBEDDED_FILE.name)) as rows, rows:
        rows.execute(f"UPDATE observations SET {damage} WHERE id = 'r3'")  # noqa: S608  (a test's own words)
    memory = await open_folder()
    assert await memory.get(Ref(id="r3"), ANN) is None
    assert "r4" in [one.observation.id for one in await memory.find("Covered subject4", "ann")]
    status = await memory.inspect("status", {}, ANN)
    assert (status["observations"], status["unreadable"]) == (RUNS - 1, 1)
    assert re.search(f"{EMBEDDED_FILE.name}: observation 'r3' is damaged and left out", caplog.text)
    assert await memory.delete(Ref(id="r3"), ANN)
    await memory.close()
