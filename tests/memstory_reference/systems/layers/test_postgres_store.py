"""What the conformance suite cannot say of every store: servers that go, locks between processes, migrations."""

import asyncio
import contextlib
import os
import random
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pytest
from memstory_tests_waiting import wait_until

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.storage.postgres import postgres_database as connections
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import claim_schema, drop_unclaimed
from memstory_reference.storage.sql_database import IN_MEMORY
from memstory_reference.systems.layers.layers_store import LayersRows, LayersStore, layers_database
from memstory_reference.systems.layers.records import Fact, Layer, MemoryRecord, Standing

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST = np.array((1, 0), np.float32)
SEMANTIC = Layer.SEMANTIC


def fact(identifier, text="tea", *, owner="ann", vector=EAST, at=NOON):
    content = Fact(category="note", subject="User", predicate="LIKES", object=text, evidence_quote=text)
    return MemoryRecord(id=identifier, owner=owner, content=content, created_at=at, updated_at=at, vector=vector)


async def opened(url, **changes):
    return await layers_in_postgres(PostgresPlace(url=url, **changes), model="fixed-2")


@pytest.fixture
async def open_store(postgres_database):
    """Open stores over one schema, as processes would; all are closed after the test."""
    stores = []

    async def open_():
        stores.append(await opened(postgres_database))
        return stores[-1]

    yield open_
    for store in stores:
        await store.aclose()


def asked(url, statement, *values):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, values).fetchall()


def told(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def terminate_lock_holders(url):
    """End the connections that hold a lock, as a lost network would."""
    asked(url, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")


async def test_a_lock_holds_between_stores_and_is_let_go(open_store):
    one, other = await open_store(), await open_store()

    async def take():
        async with other.lock("memory/ann"):
            return True

    async with one.lock("memory/ann"):
        waiting = asyncio.create_task(take())
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
    assert await waiting
    async with one.lock("memory/ann"):
        pass


async def test_a_lock_that_is_lost_writes_nothing_more(open_store, postgres_database):
    one, other = await open_store(), await open_store()
    async with one.lock("memory/ann"):
        await one.aput(fact("before"))
        terminate_lock_holders(postgres_database)
        with pytest.raises(UnavailableError):
            await one.aput(fact("after"))
        async with other.lock("memory/ann"):
            assert [found.id for found in await other.alist("ann")] == ["before"]
    await one.aput(fact("later"))


async def test_two_locks_of_one_task_go_over_one_connection(open_store, postgres_database):
    store = await open_store()
    async with store.lock("memory/ann"), store.lock("session/ann/s"):
        await store.aput(fact("f"))
        locks = asked(postgres_database, "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")
        assert len(locks) == 2
        assert len(set(locks)) == 1
    assert asked(postgres_database, "SELECT pid FROM pg_locks WHERE locktype = 'advisory'") == []


async def test_a_refused_turn_of_the_inner_lock_leaves_the_outer_one(open_store):
    one, other = await open_store(), await open_store()
    async with one.lock("outer"):
        with pytest.raises(InputError):
            async with one.lock("inner"):
                raise InputError("no")
        async with other.lock("inner"):
            pass
        await one.aput(fact("f"))


async def test_more_owners_can_be_locked_than_there_are_connections(open_store):
    store = await open_store()

    async def work(number):
        async with store.lock(f"memory/{number}"):
            await store.aput(fact(f"f{number}"))

    await asyncio.gather(*(work(number) for number in range(20)))
    assert len(await store.alist("ann")) == 20


async def test_stores_that_open_at_once_migrate_once(postgres_database):
    stores = await asyncio.gather(*(opened(postgres_database) for _ in range(6)))
    assert len({await store.asession_key() for store in stores}) == 1
    await stores[0].aput(fact("f"))
    assert [found.id for found in await stores[-1].alist("ann")] == ["f"]
    for store in stores:
        await store.aclose()


async def test_schemas_are_apart_down_to_their_locks(postgres_database):
    one, other = await opened(postgres_database, schema="one"), await opened(postgres_database, schema="other")
    await one.aput(fact("f"))
    assert await other.alist("ann") == []
    assert await one.asession_key() != await other.asession_key()
    async with one.lock("memory/ann"), asyncio.timeout(5), other.lock("memory/ann"):
        pass
    await one.aclose()
    await other.aclose()


async def test_a_schema_of_a_newer_program_is_not_touched(open_store, postgres_database):
    await open_store()
    told(postgres_database, "UPDATE memstory.about SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreConflictError, match="version 99"):
        await opened(postgres_database)


async def test_vectors_of_another_model_are_not_mixed(open_store, postgres_database):
    await open_store()
    with pytest.raises(StoreConflictError, match="fixed-2"):
        await layers_in_postgres(PostgresPlace(url=postgres_database), model="other")


async def test_nearest_rows_are_exact_whoever_else_has_rows(open_store):
    store, random = await open_store(), np.random.default_rng(3)
    rows = random.standard_normal((600, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    owners = ["ann" if number % 20 == 0 else "bob" for number in range(600)]
    await store.aput_batch([fact(f"f{n}", owner=owners[n], vector=rows[n]) for n in range(600)])
    own = [number for number in range(600) if owners[number] == "ann"]
    query = rows[7]
    expected = sorted(own, key=lambda number: -float(rows[number] @ query))[:10]
    found = await store.asearch_similar("ann", SEMANTIC, query, 10)
    assert [one.id for one in found] == [f"f{number}" for number in expected]
    assert [one.score for one in found] == pytest.approx([float(rows[n] @ query) for n in expected], abs=1e-5)


async def test_vectors_in_memory_are_those_of_the_table_whoever_has_written(open_store):
    # Two processes write for one owner; each searches with the vectors that it holds, after every step.
    stores, oracle = [await open_store(), await open_store()], LayersStore(layers_database(IN_MEMORY, model="none"))
    chance = random.Random(7)  # noqa: S311  (a test's choice)
    for number in range(120):
        identifier, store = f"f{chance.randrange(6)}", chance.choice(stores)
        old = await store.aget("ann", [identifier])
        vector = chance.choice([EAST, np.array((0, 1), np.float32), np.array((0.6, 0.8), np.float32), None])
        match chance.randrange(6):
            case 0:
                await asyncio.gather(*(one.adelete("ann", [identifier]) for one in (store, oracle)))
            case 1 if old:
                changed = replace(old[0], standing=chance.choice(list(Standing)))
                await asyncio.gather(*(one.aput(changed) for one in (store, oracle)))
            case 2 if number % 40 == 0:
                await asyncio.gather(*(one.adelete_owner("ann") for one in (store, oracle)))
            case _:
                batch = [fact(identifier, chance.choice(["tea", "cake"]), vector=vector), fact("g", vector=vector)]
                await asyncio.gather(*(one.aput_batch(batch) for one in (store, oracle)))
        expected = [(one.id, one.score) for one in await oracle.asearch_similar("ann", SEMANTIC, EAST, 10)]
        for one in stores:
            found = await one.asearch_similar("ann", SEMANTIC, EAST, 10)
            assert [(hit.id, hit.score) for hit in found] == expected


async def test_own_writes_are_followed_without_reading_all_vectors_again(open_store, monkeypatch):
    store = await open_store()
    await store.aput_batch([fact(f"f{number}") for number in range(20)])
    await store.asearch_similar("ann", SEMANTIC, EAST, 5)
    monkeypatch.delattr(LayersRows, "_matrix")
    await store.aput_batch([fact("f3", vector=np.array((0, 1), np.float32)), fact("new", at=NOON + timedelta(days=1))])
    await store.adelete("ann", ["f0"])
    found = [one.id for one in await store.asearch_similar("ann", SEMANTIC, EAST, 30)]
    assert found[0] == "new"
    assert found[-1] == "f3"
    assert len(found) == 20


async def test_tokens_are_counted_over_many_rows(open_store):
    store = await open_store()
    moments = [NOON + timedelta(seconds=number) for number in range(700)]
    await store.aput_batch([fact(f"f{n}", f"tea w{n % 7}", at=moments[n]) for n in range(700)])
    found = await store.asearch_tokens("ann", SEMANTIC, {"tea", "w3", "nowhere"}, 120)
    assert [one.score for one in found] == pytest.approx([2 / 3] * 100 + [1 / 3] * 20)
    assert [one.id for one in found[:3]] == ["f696", "f689", "f682"]
    assert [one.id for one in found[100:103]] == ["f699", "f698", "f697"]


async def test_a_token_of_any_length_is_found(open_store):
    store, token = await open_store(), "x" * 50_000
    await store.aput(fact("f", f"tea {token}"))
    assert [one.id for one in await store.asearch_tokens("ann", SEMANTIC, {token}, 5)] == ["f"]
    assert await store.adelete("ann", ["f"]) == ["f"]


async def test_deleted_words_leave_no_trace_in_the_index(open_store, postgres_database):
    store = await open_store()
    await store.aput_batch([fact("f", "green tea"), fact("g", "black tea")])
    await store.adelete("ann", ["f"])
    tokens = {token for (token,) in asked(postgres_database, "SELECT token FROM memstory.tokens")}
    assert tokens == {"user", "likes", "black", "tea"}
    await store.adelete_owner("ann")
    for table in ("namespaces", "records", "tokens", "versions"):
        assert asked(postgres_database, f"SELECT * FROM memstory.{table}") == []  # noqa: S608  (our own names)


async def test_one_id_twice_in_a_batch_keeps_the_vector_of_the_earlier(open_store):
    store = await open_store()
    await store.aput_batch([fact("f"), fact("f", vector=None), fact("g"), fact("g", "coffee", vector=None)])
    assert [one.id for one in await store.asearch_similar("ann", SEMANTIC, EAST, 5)] == ["f"]
    assert len(await store.alist("ann")) == 2


async def test_a_server_that_is_gone_is_told_at_once_and_found_again(stoppable_postgres):
    store = await opened(stoppable_postgres.start())
    await store.aput(fact("before"))
    await asyncio.to_thread(stoppable_postgres.halt)
    begun = time.monotonic()
    with pytest.raises(UnavailableError, match="Postgres does not answer"):
        await store.aput(fact("lost"))
    with pytest.raises(UnavailableError):
        async with store.lock("memory/ann"):
            pytest.fail("a lock of nobody")
    assert time.monotonic() - begun < connections.CONNECT_SECONDS
    await asyncio.to_thread(stoppable_postgres.start)
    await store.aput(fact("after"))
    assert sorted(one.id for one in await store.alist("ann")) == ["after", "before"]
    await store.aclose()


async def test_a_batch_that_the_server_does_not_survive_leaves_nothing(stoppable_postgres):
    store = await opened(url := stoppable_postgres.start())
    with contextlib.closing(psycopg.connect(url)) as holder:
        holder.execute("CHECKPOINT")  # This server waits for no disk: its tables would be lost too.
        # The last table of a batch: rows and tokens are written by the time that the batch waits for it.
        holder.execute("LOCK TABLE memstory.versions IN ACCESS EXCLUSIVE MODE")
        batch = asyncio.create_task(store.aput_batch([fact(f"f{number}") for number in range(100)]))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        await asyncio.to_thread(wait_until, lambda: asked(url, waiting) == [(1,)])
        # At once: a slower end may release the lock first, and the batch is then stored after all.
        server, *_ = (stoppable_postgres.folder / "data" / "postmaster.pid").read_text().split()
        os.kill(int(server), signal.SIGQUIT)
        await asyncio.to_thread(stoppable_postgres.halt)
        with pytest.raises(UnavailableError):
            await batch
    await asyncio.to_thread(stoppable_postgres.start)
    assert await store.alist("ann") == []
    assert await store.asearch_similar("ann", SEMANTIC, EAST, 5) == []
    await store.aclose()


@pytest.mark.slow
async def test_a_server_that_is_silent_is_not_waited_for_for_ever(stoppable_postgres, monkeypatch):
    store = await opened(url := stoppable_postgres.start())
    await store.aput(fact("f"))
    ((pid,),) = asked(url, "SELECT pid FROM pg_stat_activity WHERE application_name = 'memstory' AND query ~ 'COMMIT'")
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(UnavailableError, match=r"has not answered for 0\.3"):
            await store.aput(fact("lost"))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [one.id for one in await store.alist("ann")] == ["f"]
    await store.aclose()


async def test_a_wrong_password_is_told_without_any_password(stoppable_postgres):
    url = stoppable_postgres.start()
    right = psycopg.conninfo.conninfo_to_dict(url)["password"]
    with pytest.raises(SetupError, match="password") as raised:
        await opened(url.replace(right, "wr0ngs3cret"))
    assert "wr0ngs3cret" not in str(raised.value)
    assert right not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("postgresql://127.0.0.1:1/x", UnavailableError, "Start the server, or correct the store's URL"),
        ("postgresql://nobody.invalid/x", UnavailableError, "nobody.invalid"),
        ("postgresql://ann:s3cret@h/x?colour=blue", SetupError, "a part that libpq does not know"),
        ("postgresql://ann:s3%zzcret@h/x", SetupError, "a part that libpq does not know"),
    ],
)
async def test_a_url_that_leads_nowhere_is_told(url, error, says):
    with pytest.raises(error, match=says) as raised:
        await opened(url)
    assert "cret" not in str(raised.value)


async def test_a_database_that_is_not_there_is_told(postgres_url):
    with pytest.raises(SetupError, match='"nowhere" does not exist'):
        await opened(urlsplit(postgres_url)._replace(path="/nowhere").geturl())


async def test_schemas_whose_owner_is_gone_are_dropped_with_those_beside(postgres_database):
    left, kept = (PostgresPlace(url=postgres_database, schema=f"case_{name}") for name in ("left", "kept"))
    for place, owner in ((left, "gone"), (kept, "here")):
        await claim_schema(place, owner)
        await (await layers_in_postgres(place, model="m")).aclose()
        await claim_schema(place.sibling("audit"), "")
    assert await drop_unclaimed(left, "case_", lambda owner: owner == "gone") == ["case_left"]
    names = asked(postgres_database, "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, 'case_')")
    assert sorted(name for (name,) in names) == ["case_kept", "case_kept_audit"]
