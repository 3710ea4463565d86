"""One schema of Postgres for a store of blocking SQL: connections, migrations, and rows as SQLite gives them.

A server that is gone is reported at once, by the refusal: to try again would make each turn wait for its time limit.
"""

from __future__ import annotations

import asyncio
import logging
import re
import select
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import lru_cache
from time import monotonic
from typing import Any, ClassVar, TypeAlias, TypeVar

from psycopg import (
    AsyncConnection,
    BaseConnection,
    Connection,
    Cursor,
    Error,
    OperationalError,
    ProgrammingError,
    errors,
)
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier, Literal
from psycopg.types.string import StrDumperUnknown, TextBinaryLoader, TextLoader
from psycopg.waiting import Ready

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.errors import InputError, OtherModelError, StoreConflictError
from memstory_reference.storage.postgres.place import BESIDE, PostgresPlace
from memstory_reference.storage.sql_database import SqlDatabase

LOG = logging.getLogger(__name__)
T = TypeVar("T")

CONNECT_SECONDS = 5
UNANSWERED_MILLISECONDS = 20_000
"""How long the network may keep silent on what was sent."""

ANSWER_SECONDS = 10.0
"""How long one call may take before the server counts as one that does not answer; they take milliseconds."""


def has_input(connection: BaseConnection[Any]) -> bool:
    """Say whether the server has sent something that nobody has read."""
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    return bool(watch.poll(0))


def reason_of(error: Error) -> str:
    """Return the first line of what libpq or the server says; neither repeats the password."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def conninfo(place: PostgresPlace) -> str:
    """Return what libpq needs to connect; it may hold a password."""
    try:
        given: dict[str, str | int | None] = conninfo_to_dict(place.url)
    except ProgrammingError:
        # Its message may repeat the whole URL, with the password.
        raise SetupError("the store's URL has a part that libpq does not know; see its 'connection strings'") from None
    # jit pays for queries of seconds; ours take milliseconds, and would take longer with it.
    ours = f"-c search_path={place.schema},public -c timezone=UTC -c jit=off"
    defaults: dict[str, str | int | None] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "memstory",
        "tcp_user_timeout": UNANSWERED_MILLISECONDS,
    }
    options = {"options": f"{given.get('options') or ''} {ours}"}
    return make_conninfo("", **{**defaults, **given, **options})


_ONE_AT_A_TIME = 0x6D656D73746F7279
"""The advisory lock of all who migrate in one database."""

OPENING_SECONDS = 60.0
"""How long an opening may wait, be it for another that migrates; its own migrations may take what they take."""

Migrations: TypeAlias = Sequence[str] | Mapping[int, str]
"""What makes the next version of each, or, by the version that is found (0 of none), what makes the newest at once."""

_VERSION = "schema"
MEMORY = "memory"
"""What a schema says of itself: which memory it holds."""
_UNNAMED = "layers"
"""The memory whose schemas did not say so."""
_PASSING = ("starting up", "shutting down", "recovery", "too many", "connection slots")
"""What a server says that will answer later."""


async def open_schema(
    place: PostgresPlace, migrations: Migrations, about: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Make or update the schema of `place`; return what it says about itself, to which `about` adds what is missing.

    Raises:
        SetupError: the server refuses this user or database.
        StoreConflictError: a newer program made the schema.
        UnavailableError: nobody answers.
    """
    about = about or {}
    async with _alone(place) as (connection, limit):
        known = await (await connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", (place.schema,))).fetchone()
        if known == (False,):
            await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(place.schema)))
        await connection.execute("CREATE TABLE IF NOT EXISTS about (name text PRIMARY KEY, value text NOT NULL)")
        _check_kind(await _about(connection), place, about)
        for name, value in {_VERSION: "0", **about}.items():
            await connection.execute("INSERT INTO about VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, value))
        found = await _about(connection)
        version, newest = int(found[_VERSION]), _newest(migrations)
        steps = _steps(migrations, version, place)
        limit.reschedule(None)  # a table that is written anew takes minutes
        for migration in steps:
            await connection.execute(migration)
        if 0 < version < newest:
            versions = (version, newest)
            LOG.warning(
                "the schema %r: taken over from an earlier version of memstory (%d, now %d)", place.schema, *versions
            )
        await connection.execute("UPDATE about SET value = %s WHERE name = %s", (str(newest), _VERSION))
        return found


async def check_schema(place: PostgresPlace, migrations: Migrations) -> None:
    """Raise InputError if to open the schema of `place` would make or change it."""
    async with _alone(place) as (connection, _):
        rows = await connection.execute(
            "SELECT to_regclass(format('%%I.about', %s::text)) IS NOT NULL", (place.schema,)
        )
        found = await _about(connection) if await rows.fetchone() == (True,) else {}
    if found.get(_VERSION) != str(_newest(migrations)):
        made = f"was made by another version ({found[_VERSION]})" if _VERSION in found else "holds no memory"
        raise InputError(
            f"the schema {place.schema!r} {made}, and to open it would change it. Name another, or open it once by "
            "'memstory-reference memory status'"
        )


async def claim_schema(place: PostgresPlace, owner: str) -> None:
    """Make the schema if need be, and note in the database whose it is, for `drop_unclaimed`."""
    async with _alone(place) as (connection, _):
        schema = Identifier(place.schema)
        await connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        await connection.execute(SQL("COMMENT ON SCHEMA {} IS {}").format(schema, Literal(owner)))


async def drop_unclaimed(place: PostgresPlace, prefix: str, is_gone: Callable[[str], bool]) -> list[str]:
    """Remove the schemas of this prefix whose owner is gone, with those beside them; return their names."""
    async with _alone(place) as (connection, _):
        rows = await connection.execute(
            "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE starts_with(nspname, %s)",
            (prefix,),
        )
        dropped = [str(name) for name, owner in await rows.fetchall() if owner is not None and is_gone(owner)]
    for name in dropped:
        # Each in its own transaction: a server has locks for some hundred schemas at once.
        await drop_schemas(PostgresPlace(url=place.url, schema=name))
    return dropped


async def drop_schemas(place: PostgresPlace) -> None:
    """Remove a schema and those beside it, with all that is in them."""
    async with _alone(place) as (connection, _):
        for one in (place, *(place.sibling(name) for name in BESIDE)):
            await connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(one.schema)))


@asynccontextmanager
async def _alone(place: PostgresPlace) -> AsyncIterator[tuple[AsyncConnection[TupleRow], asyncio.Timeout]]:
    """Lend a connection in a transaction that nobody else can make or remove schemas beside, and its time limit."""
    try:
        async with (
            asyncio.timeout(OPENING_SECONDS) as limit,
            await AsyncConnection.connect(conninfo(place), autocommit=True) as connection,
            connection.transaction(),
        ):
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
            yield connection, limit
    except TimeoutError as error:
        raise UnavailableError(f"Postgres has not answered for {OPENING_SECONDS:g} seconds") from error
    except errors.InsufficientPrivilege as error:
        raise SetupError(f"Postgres lets this user not do what the store needs: {reason_of(error)}") from error
    except OperationalError as error:
        reason = reason_of(error)
        if "FATAL:" in reason and not any(words in reason for words in _PASSING):
            # The server did answer, and says who or what is wrong: a password, a database, a role.
            raise SetupError(f"Postgres refuses the store's URL: {reason}. Correct the URL") from error
        msg = f"Postgres does not answer: {reason}. Start the server, or correct the store's URL"
        raise UnavailableError(msg) from error


def _newest(migrations: Migrations) -> int:
    return len(migrations) if isinstance(migrations, Sequence) else max(migrations) + 1


def _steps(migrations: Migrations, version: int, place: PostgresPlace) -> Sequence[str]:
    newest = _newest(migrations)
    if version > newest:
        raise StoreConflictError(
            f"the schema {place.schema!r} has version {version}, this program knows {newest}: "
            "use a newer memstory, or another schema"
        )
    if isinstance(migrations, Sequence):
        return migrations[version:]
    if version == newest:
        return []
    if version not in migrations:
        raise StoreConflictError(
            f"the schema {place.schema!r} has version {version}, this program takes over those of "
            f"{', '.join(map(str, filter(None, migrations)))}: open it with the version of memstory that made it, "
            "or use another schema"
        )
    return [migrations[version]]


def _check_kind(found: Mapping[str, str], place: PostgresPlace, about: Mapping[str, str]) -> None:
    """Raise StoreConflictError where a schema holds another memory than that of `about`."""
    holds, wanted = (one.get(MEMORY, _UNNAMED) for one in (found, about))
    if _VERSION in found and holds != wanted:
        raise StoreConflictError(
            f"the schema {place.schema!r} holds a memory of {holds}, not of {wanted}: name another one by "
            "the parameter schema=NAME of the URL"
        )


async def _about(connection: AsyncConnection[TupleRow]) -> dict[str, str]:
    rows = await (await connection.execute("SELECT name, value FROM about")).fetchall()
    return {str(name): str(value) for name, value in rows}


LENT_AT_ONCE = 8
"""Connections that a process lends at once; more locks wait, and all else shares one."""

LOCK_SECONDS = 300.0
"""How long another process's lock is waited for: a model may be asked while it is held."""

_NOTICED_SECONDS = 0.1
"""How late a server that does not answer may be noticed."""

_SIGN = "\x01"
_NUL, _SIGN_ITSELF = f"{_SIGN}0", f"{_SIGN}1"
"""How a NUL, which Postgres takes in no text, is written, and the sign that this is said by."""

_MARK = re.compile(r"'[^']*'|\"[^\"]*\"|[?%]")


class NamedRow(tuple[Any, ...]):
    """A row, whose values answer to their places and to the names of their columns."""

    __slots__ = ()
    places: ClassVar[Mapping[str, int]] = {}

    def __getitem__(self, place: Any, /) -> Any:
        if not isinstance(place, str):
            return super().__getitem__(place)
        try:
            return super().__getitem__(self.places[place])
        except KeyError:
            raise IndexError("No item with that key") from None

    def keys(self) -> Sequence[str]:
        return list(self.places)


class _PatientConnection(Connection[NamedRow]):
    """A connection that is given up when the server says nothing for too long."""

    more_seconds = 0.0
    """How much longer it may say nothing."""

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        return super().wait(_limited(gen, ANSWER_SECONDS + self.more_seconds), _NOTICED_SECONDS)


class _Text(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(_SIGN, _SIGN_ITSELF).replace("\0", _NUL))


class _Truth(Dumper):
    format = Format.TEXT

    def dump(self, obj: bool) -> bytes:  # noqa: FBT001  (the base class's)
        return b"1" if obj else b"0"


class _ReadText(TextLoader):
    def load(self, data: Buffer) -> bytes | str:
        return _as_given(super().load(data))


class _ReadBinaryText(TextBinaryLoader):
    def load(self, data: Buffer) -> bytes | str:
        return _as_given(super().load(data))


class PostgresDatabase(SqlDatabase):
    """A database in a schema that `open_postgres_database` has made; the first call opens the connection.

    A connection that breaks is thrown away: its call fails at once, and the next one opens another. A key that no index
    of Postgres takes is an InputError.
    """

    is_shared = True

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._connection: _PatientConnection | None = None
        self._is_in_transaction = False
        self._locks = 0
        self._is_closed = False
        self._free = asyncio.Semaphore(LENT_AT_ONCE)
        self._idle: list[PostgresDatabase] = []
        super().__init__()

    @property
    def place(self) -> str:
        """The schema, without the URL."""
        return f"the schema {self._place.schema!r}"

    @property
    def is_in_transaction(self) -> bool:
        return self._is_in_transaction

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Cursor[NamedRow]:
        """Run one statement, which is fetched whole."""
        with self._translate_errors():
            return self._cursor().execute(_marked(sql), parameters)

    def executemany(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row, all or none."""
        with self._translate_errors():
            if self._is_in_transaction:
                self._cursor().executemany(_marked(sql), rows)
            else:
                with self._usable().transaction():
                    self._cursor().executemany(_marked(sql), rows)

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Write new rows, all or none: by COPY, which takes a third of the time."""
        with self._translate_errors(), self._cursor().copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[NamedRow]:
        """Return all rows of a query."""
        return self.execute(sql, parameters).fetchall()

    def batches(self, sql: str, parameters: Sequence[object] = (), size: int = 500) -> Iterator[list[NamedRow]]:
        """Yield what `rows` returns, so many at once."""
        cursor = self.execute(sql, parameters)
        while part := cursor.fetchmany(size):
            yield part

    @contextmanager
    def transaction(self, *owners: str) -> Iterator[None]:
        """All or nothing, also within another; nobody else is in one of these owners meanwhile, in any process."""
        with self._translate_errors():
            connection, was_within = self._usable(), self._is_in_transaction
            with connection.transaction():
                for lock in sorted({self._place.lock_of(owner) for owner in owners}):  # in one order: no deadlocks
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
                self._is_in_transaction = True
                try:
                    yield
                finally:
                    self._is_in_transaction = was_within
                if connection.info.transaction_status is not TransactionStatus.INTRANS:
                    # Who passed over an error must not believe that anything was written.
                    raise OperationalError("a statement of the transaction had failed")

    @asynccontextmanager
    async def _locked(self, name: str, held: PostgresDatabase | None) -> AsyncIterator[PostgresDatabase]:
        """Lock on a connection of its own; a second lock of the task is on the same."""
        self.lane.check_open()
        connected = self._connected() if held is None else nullcontext(held)
        async with connected as lent, lent._advisory_lock(name):  # noqa: SLF001  (the same class)
            yield lent

    def _spare(self) -> AbstractAsyncContextManager[PostgresDatabase]:
        # Where all connections are lent, this one, which all share.
        return nullcontext(self) if self._is_closed or self._free.locked() else self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[PostgresDatabase]:
        async with self._free:
            lent = self._idle.pop() if self._idle else PostgresDatabase(self._place)
            try:
                yield lent
            finally:
                if self._is_closed or lent._is_closed:  # noqa: SLF001  (the same class)
                    await lent.aclose()
                else:
                    self._idle.append(lent)

    @asynccontextmanager
    async def _advisory_lock(self, name: str) -> AsyncIterator[None]:
        key = self._place.lock_of("lock", name)
        try:
            await self.lane.run(self._lock, key)
        except BaseException:
            # Nobody knows whether it is held: it goes with the connection, also if the task is cancelled once more.
            self._is_closed = True
            await asyncio.shield(asyncio.to_thread(self._interrupt))
            await asyncio.shield(self.lane.run(self.close))
            raise
        self._locks += 1
        try:
            yield
        finally:
            self._locks -= 1
            await asyncio.shield(self.lane.run(self._unlock, key))

    def _lock(self, key: int) -> None:
        connection = self._usable()
        connection.more_seconds = LOCK_SECONDS
        connection.execute("SELECT pg_advisory_lock(%s)", (key,))
        connection.more_seconds = 0.0

    def _unlock(self, key: int) -> None:
        # A lock that was lost is nobody's; what was written under it before stands.
        with suppress(OperationalError):
            if self._connection is not None:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (key,))
                return
        self.close()

    def _interrupt(self) -> None:
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(Error):
                connection.cancel_safe(timeout=ANSWER_SECONDS)

    def close(self) -> None:
        """Let go of the server; closing twice is harmless."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def aclose(self) -> None:
        """Let go of the server once all that waits in the lane is done; closing twice is harmless."""
        self._is_closed = True
        for one in (*self._idle, self):
            await one.lane.close(one.close)

    def _cursor(self) -> Cursor[NamedRow]:
        # In binary: as text, bytes take twice as long.
        return self._usable().cursor(binary=True)

    def _usable(self) -> _PatientConnection:
        connection = self._connection
        if self._is_in_transaction:
            if connection is None:
                # Another one would write a part of what is whole or nothing.
                raise OperationalError("the connection ended within a transaction")
            return connection
        # Nobody has asked it anything: if there is something to read, it is the server's farewell.
        if connection is None or connection.closed or has_input(connection):
            self.close()
            if self._locks:
                # Another one would write what somebody else has locked by now.
                raise OperationalError("the lock was lost with its connection")
            connection = self._connection = _PatientConnection.connect(
                conninfo(self._place), autocommit=True, row_factory=_named_rows
            )
            _adapt(connection)
        return connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except errors.ProgramLimitExceeded as error:
            raise InputError("Postgres takes no id or key of so many bytes: at most 2,000 with its owner") from error
        except OperationalError as error:
            # Nobody knows its state.
            self.close()
            raise UnavailableError(f"Postgres does not answer: {reason_of(error)}") from error
        except Error as error:
            raise UnavailableError(
                f"{self.place} cannot be used: {reason_of(error)}. Restore a backup, or use another schema"
            ) from error


async def open_postgres_database(
    place: PostgresPlace, migrations: Migrations, *, memory: str, model: str
) -> PostgresDatabase:
    """Open the database in `place`, whose schema is made by `migrations` or brought up to date.

    `memory` is what the schema is of, and `model` whose vectors are in it.

    Raises:
        SetupError: the server refuses the URL's user or database.
        OtherModelError, StoreConflictError: its vectors are of another model, or something else made it.
        UnavailableError: nobody answers.
    """
    about = await open_schema(place, migrations, {MEMORY: memory, "model": model})
    if about["model"] != model:
        raise OtherModelError(
            f"the schema {place.schema!r} was made with the model {about['model']!r}, not {model!r}: use that model, "
            "or another schema",
            about["model"],
        )
    return PostgresDatabase(place)


@lru_cache(maxsize=1_000)
def _marked(sql: str) -> bytes:
    """Return a statement with the marks of Postgres' driver; what is in quotes stays.

    >>> _marked("SELECT '?', 5 % ? FROM t")
    b"SELECT '?', 5 %% %s FROM t"
    """
    return _MARK.sub(_mark, sql).encode()


def _mark(found: re.Match[str]) -> str:
    return "%s" if found[0] == "?" else found[0].replace("%", "%%")


def _named_rows(cursor: Any) -> Callable[[Sequence[Any]], NamedRow]:
    columns = cursor.description or ()
    return type("Row", (NamedRow,), {"__slots__": (), "places": {one.name: at for at, one in enumerate(columns)}})


def _as_given(text: bytes | str) -> bytes | str:
    if not isinstance(text, str) or _SIGN not in text:
        return text
    return text.replace(_NUL, "\0").replace(_SIGN_ITSELF, _SIGN)


def _adapt(connection: _PatientConnection) -> None:
    """Let a connection take and give values as SQLite does."""
    number = connection.adapters.types["int8"].oid
    connection.adapters.register_dumper(str, _Text)
    connection.adapters.register_dumper(bool, type("Truth", (_Truth,), {"oid": number}))
    connection.adapters.register_loader("text", _ReadText)
    connection.adapters.register_loader("text", _ReadBinaryText)


def _limited(work: PQGen[T], seconds: float) -> PQGen[T]:
    """Do the work of a connection; OperationalError where it waits too long for what the server says."""
    try:
        wanted, last = next(work), monotonic()
        while True:
            ready = yield wanted
            now = monotonic()
            if ready != Ready.NONE:
                last = now
            elif now - last > seconds:
                raise OperationalError(f"nothing was heard for {seconds:g} seconds")
            wanted = work.send(ready)
    except StopIteration as done:
        result: T = done.value
        return result
