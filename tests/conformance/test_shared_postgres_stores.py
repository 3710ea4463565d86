"""Both stores that processes share: they are partitioned by owner, taken over whole, and written by many at once."""

# ruff: noqa: S608  (its statements name its own tables)

import asyncio
import signal
from collections import Counter
from datetime import UTC, datetime
from multiprocessing import get_context

import numpy as np
import psycopg
import pytest

from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.composition.turns import turns_in_postgres
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.layers.records import Fact, MemoryRecord
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn
from memstory_reference.systems.turns.turn import Conditions, NewTurn, checked_turn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST = np.array((1, 0), np.float32)
OWNERS, EACH = [f"owner {number}" for number in range(30)], 4
WRITERS, BATCHES, BATCH = 4, 5, 6


LAYERS_4 = """
CREATE TABLE owners (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    next_row int NOT NULL DEFAULT 0
);
CREATE TABLE records (
    owner int NOT NULL,
    row int NOT NULL,
    id text COLLATE "C" NOT NULL,
    layer text COLLATE "C" NOT NULL,
    content text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    session text,
    count int NOT NULL,
    standing text COLLATE "C" NOT NULL,
    superseded_by text,
    PRIMARY KEY (owner, id),
    UNIQUE (owner, row)
);
CREATE INDEX by_age ON records (owner, layer, standing, created_at DESC, id);
CREATE TABLE vectors (
    owner int NOT NULL,
    row int NOT NULL,
    layer text COLLATE "C" NOT NULL,
    active boolean NOT NULL,
    created_at timestamptz NOT NULL,
    id text COLLATE "C" NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (owner, row)
);
ALTER TABLE vectors ALTER vector SET STORAGE MAIN;
CREATE INDEX by_owner ON vectors (owner, layer) WHERE active;
CREATE TABLE postings (
    owner int NOT NULL,
    layer text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    part int NOT NULL,
    bits bit(256) NOT NULL,
    PRIMARY KEY (owner, layer, token, part)
);
CREATE TABLE sessions (
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (owner, session)
);
CREATE TABLE turns (
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number int NOT NULL,
    extracted boolean NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (owner, session, number)
);
CREATE TABLE recall_off (owner text COLLATE "C" PRIMARY KEY);
ALTER TABLE owners ADD version int NOT NULL DEFAULT 0;
"""
"""What made the schema of the layers in commit ce761bf."""


TURNS_1 = """
CREATE TABLE owners (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE turns (
    owner int NOT NULL REFERENCES owners (number) ON DELETE CASCADE,
    number int GENERATED ALWAYS AS IDENTITY,
    id text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    kind text NOT NULL,
    speaker text,
    session text COLLATE "C",
    said_at text,
    noted_at text NOT NULL,
    text text NOT NULL,
    metadata text NOT NULL,
    stems text NOT NULL,
    words int NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (owner, id),
    UNIQUE (owner, number),
    UNIQUE (owner, key)
);
CREATE INDEX by_session ON turns (owner, session, number);
CREATE TABLE postings (
    owner int NOT NULL,
    stem text COLLATE "C" NOT NULL,
    number int NOT NULL,
    times int NOT NULL,
    words int NOT NULL,
    PRIMARY KEY (owner, stem, number),
    FOREIGN KEY (owner, number) REFERENCES turns (owner, number) ON DELETE CASCADE
);
CREATE INDEX by_turn ON postings (owner, number);
"""
"""And that of the turns."""


class Turns:
    """The store of the turns, and how its rows were before tables were partitioned."""

    tables, after = ("turns", "postings"), ("turns", "vectors")
    about = ", ('memory', 'turns')"
    version, made = 1, [TURNS_1]
    locked = "turns"
    rows = f"""
        INSERT INTO owners (name) SELECT unnest(%s::text[]);
        INSERT INTO turns (owner, id, key, kind, speaker, session, noted_at, text, metadata, stems, words, vector)
            SELECT o.number, n::text, 'k' || n, 'turn', 'Ann', 's', '{NOON.isoformat()}', 'tea ' || n, '{{}}',
            'tea ' || n, 2, '[1,0]' FROM owners AS o, generate_series(1, {EACH}) AS n ORDER BY n, o.number;
        INSERT INTO postings SELECT owner, stem, number, 1, 2 FROM turns, unnest(string_to_array(stems, ' ')) AS stem
    """

    @staticmethod
    async def open(url):
        return await turns_in_postgres(PostgresPlace(url=url), "fixed-2")

    @staticmethod
    async def put(store, owner, ids):
        turns = [checked_turn(NewTurn(text=f"tea {one}", speaker="Ann", session="s"), one, NOON) for one in ids]
        await store.put(owner, [IndexedTurn(turn=turn, vector=EAST, stems=turn.stems) for turn in turns])

    @staticmethod
    async def ids(store, owner):
        """The ids in the order of adding, all of them found by a word and by their vector."""
        listed = [turn.id for turn in await store.list_turns(owner, Conditions())]
        pool = await store.pool(owner, EAST, ["tea"], 10**6, Conditions())
        assert len(pool) == len(set(pool.numbers.tolist())) == pool.holding["tea"] == len(listed)
        return listed

    @staticmethod
    async def close(store):
        await store.close()


class Layers:
    """The same of the layers; of records with one moment the order of adding is not told."""

    tables, after = ("records", "vectors", "postings"), ("records", "tokens")
    about = ""
    version, made = 4, [LAYERS_4]
    locked = "postings"
    rows = f"""
        INSERT INTO owners (name, next_row) SELECT unnest(%s::text[]), {EACH};
        INSERT INTO records SELECT o.number, n - 1, n::text, 'semantic', json_build_object('category', 'note',
            'subject', 'User', 'predicate', 'LIKES', 'object', 'tea ' || n, 'evidence_quote', 'tea ' || n)::text,
            now(), now(), NULL, 1, 'active', NULL
            FROM owners AS o, generate_series(1, {EACH}) AS n ORDER BY n, o.number;
        INSERT INTO vectors SELECT owner, row, layer, true, created_at, id, '[1,0]' FROM records;
        INSERT INTO postings SELECT owner, layer, 'tea', 0, (repeat('1', {EACH}) || repeat('0', 256 - {EACH}))::bit(256)
            FROM records GROUP BY owner, layer
    """

    @staticmethod
    async def open(url):
        return await layers_in_postgres(PostgresPlace(url=url), model="fixed-2")

    @staticmethod
    async def put(store, owner, ids):
        await store.aput_batch(
            [
                MemoryRecord(
                    id=one,
                    owner=owner,
                    content=Fact(
                        category="note", subject="User", predicate="LIKES", object=f"tea {one}", evidence_quote="tea"
                    ),
                    created_at=NOON,
                    updated_at=NOON,
                    vector=EAST,
                )
                for one in ids
            ]
        )

    @staticmethod
    async def ids(store, owner):
        listed = [record.id for record in await store.alist(owner)]
        layer = (await store.alist(owner, limit=1))[0].layer
        by_word = await store.asearch_tokens(owner, layer, {"tea"}, 10**6)
        by_vector = await store.asearch_similar(owner, layer, EAST, 10**6)
        assert len(listed) == len({one.id for one in by_word}) == len({one.id for one in by_vector})
        return listed

    @staticmethod
    async def close(store):
        await store.aclose()


@pytest.fixture(params=[Turns, Layers])
def kind(request):
    return request.param


@pytest.fixture
def ask(postgres_database):
    """Runs statements in the schema, in autocommit, and returns the rows of the last."""

    def execute(*statements, given=None):
        options = "-c search_path=memstory,public"
        with psycopg.connect(postgres_database, autocommit=True, options=options) as connection:
            for statement in statements:
                cursor = psycopg.ClientCursor(connection)
                cursor.execute(statement, given if "%s" in statement else None)
            return cursor.fetchall() if cursor.description else []

    return execute


@pytest.fixture
def plain(kind, ask):
    """The schema as it was before its tables were partitioned, with rows of many owners."""
    ask(
        "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public",
        "CREATE SCHEMA memstory",
        "CREATE TABLE about (name text PRIMARY KEY, value text NOT NULL)",
        f"INSERT INTO about VALUES ('schema', '{kind.version}'), ('model', 'fixed-2') {kind.about}",
        *kind.made,
    )
    ask(kind.rows, given=(OWNERS,))


def partitions(ask):
    """How many rows each partition has, by table; of a plain table None."""
    names = "SELECT relname, relkind = 'p' FROM pg_class WHERE relnamespace = 'memstory'::regnamespace"
    found = {}
    for table, is_partitioned in ask(names + " AND relkind IN ('r', 'p') AND NOT relispartition"):
        counted = f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1"
        found[table] = dict(ask(counted)) if is_partitioned else None
    return found


def rows(ask, tables):
    return {table: sorted(ask(f"SELECT t::text FROM {table} AS t")) for table in tables}


async def opened_and_asked(kind, url):
    store = await kind.open(url)
    found = {owner: await kind.ids(store, owner) for owner in OWNERS}
    await kind.put(store, OWNERS[0], ["new"])
    added = await kind.ids(store, OWNERS[0])
    await kind.close(store)
    return found, added


def opens(kind, url):
    asyncio.run(kind.open(url))


@pytest.mark.usefixtures("plain")
async def test_a_plain_schema_is_taken_over_once_though_the_first_who_does_it_is_killed_in_the_middle(
    kind, ask, postgres_database
):
    before = rows(ask, kind.tables)
    assert all(len(found) >= len(OWNERS) for found in before.values())
    # Who takes over has written some tables anew, and waits here for the next.
    with psycopg.connect(postgres_database) as connection:
        connection.execute(f"LOCK TABLE memstory.{kind.locked} IN ACCESS SHARE MODE")
        process = get_context("spawn").Process(target=opens, args=(kind, postgres_database))
        process.start()
        waits = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'"
        while not (waiting := ask(waits)):
            assert process.is_alive()
            await asyncio.sleep(0.05)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    while ask(f"SELECT 1 FROM pg_stat_activity WHERE pid = {waiting[0][0]}"):  # noqa: ASYNC110  (a server has no event)
        await asyncio.sleep(0.05)
    assert set(partitions(ask).values()) == {None}
    assert rows(ask, kind.tables) == before

    found, added = await opened_and_asked(kind, postgres_database)
    assert {owner: sorted(ids) for owner, ids in found.items()} == {
        owner: [str(number) for number in range(1, EACH + 1)] for owner in OWNERS
    }
    assert Counter(added) == Counter([*found[OWNERS[0]], "new"])
    spread = partitions(ask)
    for table in kind.after:
        assert len(spread[table]) > len(OWNERS) / 4
        assert sum(spread[table].values()) >= len(OWNERS) * EACH


def writes(kind, url, number, owners):
    async def write():
        store = await kind.open(url)
        for batch in range(BATCHES):
            for owner in owners:
                await kind.put(store, owner, [f"{number}-{batch}-{place}" for place in range(BATCH)])
        await kind.close(store)

    asyncio.run(write())


async def test_four_processes_write_for_their_own_owners_and_for_one_owner(kind, postgres_database):
    spawn = get_context("spawn")
    processes = [
        spawn.Process(target=writes, args=(kind, postgres_database, number, [f"of {number}", "of all"]))
        for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    store = await kind.open(postgres_database)
    of_all = await kind.ids(store, "of all")
    for number in range(WRITERS):
        own = [f"{number}-{batch}-{place}" for batch in range(BATCHES) for place in range(BATCH)]
        found = await kind.ids(store, f"of {number}")
        assert sorted(found) == sorted(own)
        if kind is Turns:
            # A batch is whole: nobody else's turns are in it, and a writer's batches keep their order.
            assert found == own == [one for one in of_all if one.startswith(f"{number}-")]
            starts = [of_all.index(f"{number}-{batch}-0") for batch in range(BATCHES)]
            assert all(of_all[at : at + BATCH] == own[b * BATCH : (b + 1) * BATCH] for b, at in enumerate(starts))
    assert len(of_all) == WRITERS * BATCHES * BATCH
    await kind.close(store)
