"""SIGKILL of the Postgres server itself, again and again: what was acknowledged is there, and every batch is whole."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest

from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.layers.records import Fact, MemoryRecord, SessionMemoryBuffer

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST = np.array((1, 0), np.float32)
BATCH = 5


def fact(identifier, text):
    content = Fact(category="note", subject="User", predicate="LIKES", object=text, evidence_quote=text)
    return MemoryRecord(id=identifier, owner="ann", content=content, created_at=NOON, updated_at=NOON, vector=EAST)


@asynccontextmanager
async def opened(url):
    store = await layers_in_postgres(PostgresPlace(url=url), model="fixed-2")
    yield store
    await store.aclose()


@pytest.mark.doses("kills", 2, 50)
async def test_what_was_acknowledged_outlives_a_server_that_is_killed(killed_postgres, kills):
    steps, acknowledged = count(), set()

    async def write(store):
        for step in steps:
            await store.aput_batch([fact(f"{step}-{place}", f"word{step}") for place in range(BATCH)])
            session = SessionMemoryBuffer(owner="ann", session="s", arc_id="a", started_at=NOON, last_at=NOON)
            await store.asave(session.add_turn("one", "two", NOON))
            await store.aend("ann", "s", [fact(f"{step}-end", f"word{step}")])
            acknowledged.add(step)

    async with killed_postgres(kills, opened, write, acknowledged) as store:
        found = {record.id for record in await store.alist("ann")}
    assert acknowledged
    for step in range(next(steps)):
        batch = {one for one in found if one.startswith(f"{step}-") and not one.endswith("end")}
        assert len(batch) in (0, BATCH)
        if step in acknowledged:
            assert len(batch) == BATCH
            assert f"{step}-end" in found
