"""What a store of blocking SQL may rely on, on both engines."""

import asyncio
import contextlib
import random
import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import InputError, OtherModelError, StoreConflictError
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import (
    LENT_AT_ONCE,
    PostgresDatabase,
    open_postgres_database,
)
from memstory_reference.storage.postgres.tables import postgres_tables
from memstory_reference.storage.sql_database import EVERY, Database, SerialThread

TABLES = """
CREATE TABLE IF NOT EXISTS notes (
    row INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    text TEXT,
    weight REAL,
    shown INTEGER,
    timestamp TEXT,
    vector BLOB,
    UNIQUE (owner, id)
);
CREATE INDEX IF NOT EXISTS by_text ON notes (owner, text) WHERE text IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS by_time ON notes (owner, timestamp) WHERE timestamp IS NOT NULL;
CREATE TABLE IF NOT EXISTS sums (name TEXT PRIMARY KEY, total INTEGER);
"""
PUT = "INSERT INTO notes (owner, id, text) VALUES (?, ?, ?)"


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request):
    return request.param


@pytest.fixture
async def opened(engine, request, tmp_path):
    """Open the database once more; all are closed after the test."""
    databases = []
    url = request.getfixturevalue("postgres_database") if engine == "postgres" else None

    async def opened(model="one", memory="notes"):
        if url is None:
            database = Database(tmp_path / "it.sqlite3", schema=TABLES, about={"schema": "1", "model": model})
        else:
            place = PostgresPlace(url=url, schema="notes")
            database = await open_postgres_database(place, [postgres_tables(TABLES)], memory=memory, model=model)
        databases.append(database)
        return database

    yield opened
    for database in databases:
        await database.aclose()


@pytest.fixture
async def database(opened):
    return await opened()


def ids(database):
    return [identifier for (identifier,) in database.execute("SELECT id FROM notes ORDER BY id")]


async def test_a_row_answers_to_places_and_names_and_can_be_unpacked(database):
    database.execute(PUT, ("ann", "a", "Bees hum."))
    (row,) = database.rows("SELECT id, text AS said FROM notes")
    identifier, text = row
    assert (identifier, text) == (row[0], row[1]) == (row["id"], row["said"]) == ("a", "Bees hum.")
    assert list(row.keys()) == ["id", "said"]
    assert len(row) == 2
    with pytest.raises(IndexError, match="No item with that key"):
        row["gone"]


@pytest.mark.parametrize(
    "text", ["", "\0", "\1", "\0\1", "\0010", "\0011\0", "a\0b", "Ünïcödé 🦀", "%s ? ' \"", "\\0", "\\x00"], ids=repr
)
async def test_any_text_comes_back_as_it_was_and_is_found_by_itself(database, text):
    database.execute(PUT, ("ann", f"id{text}", text))
    assert [tuple(row) for row in database.execute("SELECT id, text FROM notes")] == [(f"id{text}", text)]
    assert database.execute("SELECT count(*) FROM notes WHERE text = ? AND owner = ?", (text, "ann")).fetchone()[0] == 1


async def test_bytes_numbers_truth_and_nothing_come_back_as_sqlite_gives_them(database):
    sql = "INSERT INTO notes (owner, id, text, weight, shown, vector) VALUES (?, ?, ?, ?, ?, ?)"
    database.execute(sql, ("ann", "a", None, 0.1, True, bytes(range(256))))
    database.execute(sql, ("ann", "b", None, None, False, b""))
    rows = database.execute("SELECT text, weight, shown, vector FROM notes ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == [(None, 0.1, 1, bytes(range(256))), (None, None, 0, b"")]
    assert [type(row["shown"]) for row in rows] == [int, int]
    assert ids_of_length(database, 256) == ["a"]
    assert database.execute("SELECT count(*) FROM notes WHERE shown = ?", (True,)).fetchone()[0] == 1


def ids_of_length(database, length):
    return [row["id"] for row in database.execute("SELECT id FROM notes WHERE length(vector) = ?", (length,))]


async def test_marks_in_quotes_and_percent_signs_are_no_marks(database):
    row = database.execute("SELECT '?' AS mark, '%' AS percent, 7 % 4 AS rest, ? AS given", ("%s",)).fetchone()
    assert tuple(row) == ("?", "%", 3, "%s")


async def test_names_sort_by_their_bytes(database):
    names = ["a", "B", "_", "ä", "Z", "1"]
    database.executemany(PUT, [("ann", name, "") for name in names])
    assert ids(database) == sorted(names)
    assert [row[0] for row in database.execute("SELECT id FROM notes ORDER BY row LIMIT ?", (EVERY,))] == names


async def test_what_is_there_is_kept_or_replaced_as_a_statement_says(database):
    assert database.execute(f"{PUT} ON CONFLICT DO NOTHING", ("ann", "a", "old")).rowcount == 1
    assert database.execute(f"{PUT} ON CONFLICT DO NOTHING", ("ann", "a", "new")).rowcount == 0
    replaced = "ON CONFLICT (owner, id) DO UPDATE SET text = excluded.text RETURNING text, row"
    text, number = database.execute(f"{PUT} {replaced}", ("ann", "a", "newest")).fetchone()
    assert (text, type(number)) == ("newest", int)
    gone = database.execute("DELETE FROM notes WHERE owner = ? AND id = ? RETURNING id", ("ann", "a")).fetchall()
    assert [row["id"] for row in gone] == ["a"]
    assert database.execute("DELETE FROM notes WHERE owner = ?", ("ann",)).rowcount == 0


async def test_a_transaction_that_fails_leaves_nothing_and_the_next_is_whole(database):
    def fail():
        with database.transaction("ann"):
            database.execute(PUT, ("ann", "a", ""))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.transaction():
        database.executemany(PUT, [("ann", "b", ""), ("ann", "c", "")])
    assert ids(database) == ["b", "c"]


async def test_many_rows_are_written_all_or_none(database):
    with pytest.raises(UnavailableError), database.transaction():
        database.executemany(PUT, [("ann", "a", ""), ("ann", "a", "")])
    assert ids(database) == []


async def test_rows_come_in_batches(database):
    database.executemany(PUT, [("ann", f"{number}", "") for number in range(5)])
    batches = database.batches("SELECT id FROM notes WHERE owner = ? ORDER BY id", ("ann",), size=2)
    assert [[row["id"] for row in part] for part in batches] == [["0", "1"], ["2", "3"], ["4"]]


async def test_two_that_read_and_then_write_in_a_transaction_of_one_owner_lose_nothing(opened):
    def count_up(database):
        for _ in range(20):
            with database.transaction("ann"):
                row = database.execute("SELECT total FROM sums WHERE name = 'ann'").fetchone()
                database.execute(
                    "INSERT INTO sums VALUES ('ann', ?) ON CONFLICT (name) DO UPDATE SET total = excluded.total",
                    ((row["total"] if row else 0) + 1,),
                )

    both = [await opened(), await opened()]
    await asyncio.gather(*(one.lane.run(count_up, one) for one in both))
    assert both[0].execute("SELECT total FROM sums").fetchone()[0] == 40


async def test_what_is_written_by_a_lent_database_is_read_by_every_other(database):
    async with database.lend() as lent:
        await lent.lane.run(lent.execute, PUT, ("ann", "a", ""))
        async with database.lend() as other:
            assert await other.lane.run(ids, other) == ["a"]
    assert ids(database) == ["a"]


async def test_a_statement_that_is_wrong_is_one_line_and_the_next_works(database):
    with pytest.raises(UnavailableError, match=r"cannot be used: .*nowhere"):
        await database.lane.run(database.execute, "SELECT * FROM nowhere")
    assert ids(database) == []


async def test_what_a_task_does_under_a_lock_goes_by_the_database_of_the_lock(database):
    def used(one):
        return one

    async def another():
        return await database.run(used)

    async with database.hold("ann") as held:
        async with database.hold("bob") as inner:
            assert inner is held
            assert await database.run(used) is held
        assert await database.run(used) is held
        assert (await asyncio.create_task(another()) is held) is not database.is_shared
    async with database.lend() as lent:
        assert await lent.lane.run(ids, lent) == []


async def test_a_damaged_row_is_said_once_with_its_place(database, caplog):
    for _ in range(2):
        database.leave_out("note 'a'", "a reason", "Forget it")
    assert caplog.messages == [f"{database.place}: note 'a' is damaged and left out: a reason. Forget it"]
    assert database.count_lost("notes") == 0


async def test_another_model_is_refused_and_named(opened):
    await opened()
    with pytest.raises(OtherModelError, match=r"with (the )?model 'one'.* not 'two'") as refusal:
        await opened(model="two")
    assert refusal.value.model == "one"


async def test_after_closing_nothing_runs_and_closing_twice_is_harmless(database):
    await database.aclose()
    await database.aclose()
    with pytest.raises(UnavailableError, match="was closed"):
        await database.lane.run(database.execute, "SELECT 1")
    async with database.lend() as lent:
        with pytest.raises(UnavailableError, match="was closed"):
            await lent.lane.run(lent.execute, "SELECT 1")
    with pytest.raises(UnavailableError, match="was closed"):
        async with database.hold("ann") as held:
            await held.lane.run(held.execute, "SELECT 1")


class TestPostgres:
    @pytest.fixture
    def engine(self):
        return "postgres"

    @pytest.fixture
    def ended(self, postgres_database):
        """End every connection to the database, as a server that restarts does."""

        def end():
            with psycopg.connect(postgres_database, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

        return end

    async def test_a_schema_of_another_memory_is_refused(self, opened):
        await opened()
        with pytest.raises(StoreConflictError, match="'notes' holds a memory of notes, not of pipeline"):
            await opened(memory="pipeline")

    async def test_every_table_with_an_owner_is_divided_by_the_owner(self, database):
        rows = database.execute("SELECT relname FROM pg_class WHERE relkind = 'p' ORDER BY 1")
        assert [row[0] for row in rows] == ["notes"]

    async def test_a_call_that_waits_for_its_owner_holds_up_none_that_is_lent_another_database(self, opened, database):
        def write(one):
            with one.transaction("ann"):
                one.execute(PUT, ("ann", "b", ""))

        async def call(work):
            async with database.lend() as lent:
                return await lent.lane.run(work, lent)

        other = await opened()
        with other.transaction("ann"):
            waiting = asyncio.create_task(call(write))
            await asyncio.sleep(0)
            assert await call(ids) == []
            assert not waiting.done()
        await waiting
        assert ids(database) == ["b"]

    async def test_where_all_are_lent_a_call_goes_on_by_the_one_that_all_share(self, database):
        async with contextlib.AsyncExitStack() as stack:
            lent = [await stack.enter_async_context(database.lend()) for _ in range(LENT_AT_ONCE + 2)]
            assert len(set(lent)) == LENT_AT_ONCE + 1
            assert lent[-1] is database
            assert await lent[-1].lane.run(ids, lent[-1]) == []

    async def test_a_key_that_is_too_long_for_an_index_is_refused_and_harms_nothing(self, database, seed):
        longest = random.Random(seed).randbytes(5_000)  # noqa: S311  (no secret; what repeats itself is packed)
        with pytest.raises(InputError, match="at most 2,000"):
            database.execute(PUT, ("ann", longest[:2_000].hex(), ""))
        database.execute(PUT, ("ann", longest[:800].hex(), None))
        assert ids(database) == [longest[:800].hex()]

    async def test_a_connection_that_ended_between_two_calls_is_not_noticed(self, database, ended):
        database.execute(PUT, ("ann", "a", ""))
        ended()
        assert ids(database) == ["a"]

    async def test_a_connection_that_ends_in_a_transaction_fails_it_whole_and_the_next_call_works(
        self, database, ended
    ):
        def write():
            with database.transaction("ann"):
                database.execute(PUT, ("ann", "a", ""))
                ended()
                database.execute(PUT, ("ann", "b", ""))

        with pytest.raises(UnavailableError, match="Postgres does not answer"):
            write()
        assert ids(database) == []

    @pytest.mark.parametrize("wrong", ["ended", "statement"])
    async def test_a_caller_that_passes_over_a_failure_is_told_that_nothing_was_written(self, database, ended, wrong):
        def go_on():
            with database.transaction("ann"):
                database.execute(PUT, ("ann", "a", ""))
                if wrong == "ended":
                    ended()
                for name in ("a", "b"):
                    with contextlib.suppress(UnavailableError):
                        database.execute(PUT, ("ann", name, ""))

        with pytest.raises(UnavailableError, match="Postgres does not answer"):
            go_on()
        assert ids(database) == []

    async def test_a_task_that_is_cancelled_twice_while_it_waits_for_a_lock_leaves_none(
        self, opened, postgres_database, monkeypatch
    ):
        database, other = await opened(), await opened()
        begun, go_on, real = threading.Event(), threading.Event(), PostgresDatabase._interrupt

        def interrupt(one):
            begun.set()
            assert go_on.wait(30)
            real(one)

        async def hold():
            async with database.hold("ann"):
                raise AssertionError("it was cancelled before")

        monkeypatch.setattr(PostgresDatabase, "_interrupt", interrupt)
        async with other.hold("ann"):
            task = asyncio.create_task(hold())
            await asyncio.wait([task], timeout=0.2)
            task.cancel()
            assert await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            await asyncio.wait([task], timeout=0.2)
        with pytest.raises(asyncio.CancelledError):
            await task
        with psycopg.connect(postgres_database) as connection:
            connection.execute("SET lock_timeout = '5s'")
            connection.execute("SELECT pg_advisory_lock(%s)", (database._place.lock_of("lock", "ann"),))
        go_on.set()

    async def test_a_server_that_says_nothing_is_given_up(self, database, monkeypatch):
        store = "memstory_reference.storage.postgres.postgres_database.ANSWER_SECONDS"
        monkeypatch.setattr(store, 0.2)
        with pytest.raises(UnavailableError, match=r"nothing was heard for 0\.2 seconds"):
            database.execute("SELECT pg_sleep(30)")
        monkeypatch.undo()
        assert ids(database) == []


async def test_calls_take_turns_even_when_a_caller_goes_away():
    lane, entered, leave, order = SerialThread("here"), threading.Event(), threading.Event(), []

    def first():
        entered.set()
        leave.wait(5)
        order.append("first")

    task = asyncio.create_task(lane.run(first))
    await asyncio.to_thread(entered.wait, 5)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    second = asyncio.create_task(lane.run(order.append, "second"))
    await asyncio.sleep(0)
    assert order == []
    leave.set()
    await second
    assert order == ["first", "second"]


async def test_closing_waits_for_what_was_asked_before_and_refuses_what_comes_after():
    lane, order = SerialThread("here"), []
    waiting = asyncio.create_task(lane.run(order.append, "call"))
    await asyncio.sleep(0)
    await lane.close(lambda: order.append("closed"))
    await lane.close(lambda: order.append("closed again"))
    await waiting
    with pytest.raises(UnavailableError, match="the store at here was closed; open it again"):
        await lane.run(order.append, "late")
    assert order == ["call", "closed"]


async def test_errors_of_the_library_are_translated():
    @contextmanager
    def translated():
        try:
            yield
        except ZeroDivisionError as problem:
            raise UnavailableError("divided") from problem

    with pytest.raises(UnavailableError, match="divided"):
        await SerialThread("here", translated).run(lambda: 1 / 0)
