"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from memstory_reference.composition.turns import open_sqlite_turns
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.stores.store import Written
from memstory_reference.systems.turns.turn import NewTurn, checked_turn
from memstory_reference.text.stems import stems

OWNERS = ("ana", "bob")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def written(name, number):
    vector = np.random.default_rng(number).standard_normal(16)
    turn = checked_turn(NewTurn(text=f"word{number}", speaker="Ann", session="s"), name, NOON)
    return Written(turn=turn, vector=(vector / np.linalg.norm(vector)).astype(np.float32), stems=stems(turn.text))


async def write(folder, done, acknowledge):
    """Write until killed: two turns a step, then the second again with another text; every third step deletes one."""
    store = open_sqlite_turns(Path(folder), "numbered")
    for step in count(min(done.values())):
        for owner in OWNERS:
            await store.put(owner, [written(f"a{step}", 3 * step), written(f"b{step}", 3 * step + 1)])
            await store.put(owner, [written(f"b{step}", 3 * step + 2)])
            if step % 3 == 2:
                await store.delete(owner, [f"a{step}"])
            acknowledge(owner, step)


async def verify(folder, done):
    store = open_sqlite_turns(Path(folder), "numbered")
    for owner, steps in done.items():
        turns = {turn.id: turn.text for turn in await store.listed(owner, Conditions())}
        for step in range(steps):
            assert turns.get(f"b{step}") == f"word{3 * step + 2}", f"{owner} has lost b{step}"
            assert (f"a{step}" in turns) == (step % 3 != 2), f"{owner}: a{step}"
        for name, text in turns.items():
            # The matrix holds the vector of the very text that SQLite holds, and the words find it.
            number = int(text.removeprefix("word"))
            pool = await store.pool(owner, written(name, number).vector, stems(text), 1, Conditions())
            found = {one.id: one for one in pool.candidates}
            assert found[name].cosine == 1.0, f"{owner}: {name} has another vector"
            assert pool.holding, f"{owner}: {name} is not among the words"
    await store.close()


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_no_kill_loses_or_mixes_what_was_acknowledged(kill_writers, tmp_path, kills):
    # T-16
    kill_writers(__file__, tmp_path / "store", kills)
