"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

import asyncio
from datetime import UTC, datetime
from itertools import count

import numpy as np
import psycopg
import pytest

from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.records import Arc, Fact, Layer, MemoryRecord, SessionMemoryBuffer

OWNERS = ("ann",)
URL = "url"
"""The file that names the database, which outlives its writers; a folder without it is SQLite's."""

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VECTOR = np.array([1, 0], np.float32)


def record(identifier, content):
    return MemoryRecord(id=identifier, owner="ann", content=content, created_at=NOON, updated_at=NOON, vector=VECTOR)


def fact(step):
    return Fact(category="note", subject="User", predicate="LIKES", object=f"word{step}", evidence_quote="q")


async def opened(folder):
    url = folder / URL
    if not url.exists():
        return LayersStore(layers_database(folder / "memory.sqlite3", model="fixed-2"))
    await the_end_of_the_others(url.read_text())
    return await layers_in_postgres(parse_place(url.read_text()), model="fixed-2")


async def the_end_of_the_others(url):
    """Wait until the server has noticed that a writer is dead: what it had been sent may still be at work."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while await (await connection.execute(others)).fetchone() != (0,):  # noqa: ASYNC110  (a server sets no event)
            await asyncio.sleep(0.01)


async def write(folder, done, acknowledge):
    """Write until killed: each step one session that ends with an arc and a fact."""
    store = await opened(folder)
    for step in count(done["ann"]):
        session = SessionMemoryBuffer(owner="ann", session=f"s-{step}", arc_id="a", started_at=NOON, last_at=NOON)
        await store.asave(session)
        left = [record(f"a-{step}", Arc(summary=f"arc{step}")), record(f"e-{step}", fact(step))]
        await store.aend("ann", f"s-{step}", left)
        acknowledge("ann", step)


async def verify(folder, done):
    store = await opened(folder)
    rows = {one.id for one in await store.alist("ann")}
    active = {one.session for one in await store.aactive("ann")}
    steps = done["ann"]
    for step in range(steps + 1):
        ended = {f"a-{step}", f"e-{step}"} & rows
        assert len(ended) in (0, 2), (step, ended)
        assert not (ended and f"s-{step}" in active), step
        if step < steps:
            assert ended, f"an acknowledged end of step {step} is lost"
        found = await store.asearch_tokens("ann", Layer.SEMANTIC, {f"word{step}"}, 10)
        assert {one.id for one in found} == {one for one in ended if one[0] == "e"}
    assert len(await store.asearch_similar("ann", Layer.SEMANTIC, VECTOR, 100_000)) == sum(
        one[0] != "a" for one in rows
    )
    await store.aclose()


@pytest.mark.doses("kills", 3, 125)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_after_kills_every_end_of_a_session_is_there_whole_or_not_at_all(kill_writers, tmp_path, request, store, kills):
    folder = tmp_path / "store"
    folder.mkdir()
    if store == "postgres":
        (folder / URL).write_text(request.getfixturevalue("postgres_database"))
    kill_writers(__file__, folder, kills)
