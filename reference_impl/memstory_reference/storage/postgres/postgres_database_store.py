"""One schema of Postgres for a store of blocking SQL: connection, transactions, and rows as SQLite gives them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import lru_cache
from time import monotonic
from typing import Any, ClassVar, TypeAlias, TypeVar

from psycopg import Connection, Cursor, Error, OperationalError, errors
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper
from psycopg.pq import Format, TransactionStatus
from psycopg.types.string import StrDumperUnknown, TextBinaryLoader, TextLoader
from psycopg.waiting import Ready

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import InputError, OtherModelError
from memstory_reference.storage.lane import NamedLocks, SerialThread
from memstory_reference.storage.postgres.connections_store import (
    ANSWER_SECONDS,
    conninfo,
    has_input,
    reason_of,
)
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.schema_store import MEMORY, Migrations, open_schema
from memstory_reference.storage.sql_database import DamagedRows

T = TypeVar("T")

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


SharedCursor: TypeAlias = Cursor[NamedRow]


class PostgresDatabase(DamagedRows):
    """A `SqlDatabase` in a schema that `open_postgres_database` has made; the first call opens the connection.

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
        self._names = NamedLocks()
        self._free = asyncio.Semaphore(LENT_AT_ONCE)
        self._idle: list[PostgresDatabase] = []
        super().__init__()
        self.lane = SerialThread(self.place, self._translate_errors)

    @property
    def place(self) -> str:
        """The schema, without the URL."""
        return f"the schema {self._place.schema!r}"

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> SharedCursor:
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
    async def hold(self, name: str) -> AsyncIterator[PostgresDatabase]:
        """Hold `name` in all processes, on a connection of its own; a second lock of the task is on the same."""
        async with self._names.hold(name):
            self.lane.check_open()
            if self._locks:
                async with self._locked(name):
                    yield self
                return
            async with self._free, self._spare() as lent, lent._locked(name):  # noqa: SLF001  (the same class)
                yield lent

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[PostgresDatabase]:
        """Lend a connection that nobody else uses meanwhile; where all are lent, this one, which all share."""
        if self._is_closed or self._free.locked():
            yield self
            return
        async with self._free, self._spare() as lent:
            yield lent

    @asynccontextmanager
    async def _spare(self) -> AsyncIterator[PostgresDatabase]:
        lent = self._idle.pop() if self._idle else PostgresDatabase(self._place)
        lent._names = self._names  # noqa: SLF001  (the same class)
        try:
            yield lent
        finally:
            if self._is_closed or lent._is_closed:  # noqa: SLF001  (the same class)
                await lent.aclose()
            else:
                self._idle.append(lent)

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
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

    def count_lost(self, *_: str) -> int:
        """Return 0: what is damaged the server says itself."""
        return 0

    def forget_log(self) -> None:
        """Do nothing: the log is in the hands of who runs the server."""

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

    def _cursor(self) -> SharedCursor:
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
