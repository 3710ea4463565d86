"""SIGKILL of the Postgres server while turns are added and deleted: nothing acknowledged is lost, a batch is whole."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest

from memstory_reference.composition.turns import turns_in_postgres
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn
from memstory_reference.systems.turns.turn import Conditions, NewTurn, checked_turn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST = np.array((1, 0), np.float32)
BATCH = 5


def written(name, text):
    turn = checked_turn(NewTurn(text=text, speaker="Ann", session="s"), name, NOON)
    return IndexedTurn(turn=turn, vector=EAST, stems=turn.stems)


@asynccontextmanager
async def opened(url):
    store = await turns_in_postgres(PostgresPlace(url=url), "fixed-2")
    yield store
    await store.close()


@pytest.mark.doses("kills", 2, 50)
async def test_added_and_deleted_turns_outlive_a_server_that_is_killed(killed_postgres, kills):
    steps, added, deleted, asked_to_delete = count(), set(), set(), set()

    async def write(store):
        for step in steps:
            await store.put("ann", [written(f"{step}-{place}", f"word{step}") for place in range(BATCH)])
            added.add(step)
            if step % 3 == 2:
                asked_to_delete.add(step)
                await store.delete("ann", [f"{step}-0"])
                deleted.add(step)

    async with killed_postgres(kills, opened, write, added) as store:
        turns = [turn.id for turn in await store.list_turns("ann", Conditions())]
        pool = await store.pool("ann", EAST, [f"word{step}" for step in added], 10**6, Conditions())
    assert added
    assert len(pool) == len(turns) == len(set(turns)), "vectors and turns differ"
    whole, without_first = list(range(BATCH)), list(range(1, BATCH))
    for step in range(next(steps)):
        found = [place for place in range(BATCH) if f"{step}-{place}" in turns]
        if step not in added:
            assert found in ([], whole)
            continue
        assert found == whole or step in asked_to_delete
        assert found in ([without_first] if step in deleted else [without_first, whole])
        assert pool.holding.get(f"word{step}") == len(found)
