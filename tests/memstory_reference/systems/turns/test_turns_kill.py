"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

import asyncio
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import psycopg
import pytest

from memstory_reference.composition.turns import open_sqlite_turns
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.stores.postgres_store import open_postgres_turns
from memstory_reference.systems.turns.stores.store import IndexedTurn
from memstory_reference.systems.turns.turn import NewTurn, checked_turn
from memstory_reference.text.stems import stems

OWNERS = ("ana", "bob")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
URL = "url"
"""The file that names the database, which outlives its writers; a folder without it is SQLite's."""


def written(name, number):
    vector = np.random.default_rng(number).standard_normal(16)
    turn = checked_turn(NewTurn(text=f"word{number}", speaker="Ann", session="s"), name, NOON)
    return IndexedTurn(turn=turn, vector=(vector / np.linalg.norm(vector)).astype(np.float32), stems=turn.stems)


async def opened(folder):
    url = Path(folder) / URL
    if not url.exists():
        return open_sqlite_turns(Path(folder), "numbered")
    await the_end_of_the_others(url.read_text())
    return await open_postgres_turns(parse_place(url.read_text()), model="numbered")


async def the_end_of_the_others(url):
    """Wait until the server has noticed that a writer is dead: what it had been sent may still be at work."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while await (await connection.execute(others)).fetchone() != (0,):  # noqa: ASYNC110  (a server sets no event)
            await asyncio.sleep(0.01)


async def write(folder, done, acknowledge):
    """Write until killed: two turns a step, then the second again with another text; every third step deletes one."""
    store = await opened(folder)
    for step in count(min(done.values())):
        for owner in OWNERS:
            await store.put(owner, [written(f"a{step}", 3 * step), written(f"b{step}", 3 * step + 1)])
            await store.put(owner, [written(f"b{step}", 3 * step + 2)])
            if step % 3 == 2:
                await store.delete(owner, [f"a{step}"])
            acknowledge(owner, step)


async def verify(folder, done):
    store = await opened(folder)
    for owner, steps in done.items():
        turns = {turn.id: turn.text for turn in await store.listed(owner, Conditions())}
        for step in range(steps):
            assert turns.get(f"b{step}") == f"word{3 * step + 2}", f"{owner} has lost b{step}"
            assert (f"a{step}" in turns) == (step % 3 != 2), f"{owner}: a{step}"
        for name, text in list(turns.items())[-10:]:
            # The matrix holds the vector of the very text that SQLite holds, and the words find it.
            number = int(text.removeprefix("word"))
            pool = await store.pool(owner, written(name, number).vector, stems(text), 1, Conditions())
            places = await store.numbered(owner, pool.numbers.tolist())
            row = [turn.id for turn in places.values()].index(name)
            assert pool.cosines[row] == pytest.approx(1, abs=1e-6), f"{owner}: {name} has another vector"
            assert pool.holding, f"{owner}: {name} is not among the words"
    await store.close()


@pytest.mark.doses("kills", 3, 100)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_kill_loses_or_mixes_what_was_acknowledged(kill_writers, tmp_path, request, store, kills):
    # T-16
    folder = tmp_path / "store"
    folder.mkdir()
    if store == "postgres":
        (folder / URL).write_text(request.getfixturevalue("postgres_database"))
    kill_writers(__file__, folder, kills)
