"""Connections to one Postgres: kept for the next call, reopened when the server has closed them.

A server that is gone is reported at once, by the refusal; a pool that tries again in the background would make every
turn wait for its time limit first.
"""

from __future__ import annotations

import asyncio
import select
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection, BaseConnection, Error, OperationalError, ProgrammingError
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format
from psycopg.rows import TupleRow
from psycopg.types import TypeInfo

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.storage.postgres.place import PostgresPlace

Connection: TypeAlias = AsyncConnection[TupleRow]

CONNECT_SECONDS = 5
UNANSWERED_MILLISECONDS = 20_000
"""How long the network may keep silent on what was sent."""

ANSWER_SECONDS = 10.0
"""How long one call may take before the server counts as one that does not answer; they take milliseconds."""


_VECTOR_HEAD = 4
"""Bytes of a vector in binary before its numbers, which are big-endian floats."""


class VectorDumper(Dumper):
    """Writes an array in pgvector's binary form: dimension, two bytes for later use, then big-endian floats."""

    format = Format.BINARY

    def dump(self, obj: NDArray[np.float32]) -> bytes:
        return struct.pack(">HH", len(obj), 0) + obj.astype(">f4").tobytes()


def vector_of(sent: bytes) -> NDArray[np.float32]:
    """Return the vector that a binary cursor has read."""
    return np.frombuffer(sent, ">f4", offset=_VECTOR_HEAD).astype(np.float32)


class Connections:
    """At most `size` connections to a place. A call that finds none free waits for one.

    A connection whose call has failed is closed, for nobody knows its state; the next call makes a new one.
    """

    def __init__(self, place: PostgresPlace, *, size: int) -> None:
        self._conninfo = conninfo(place)
        self._free = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._vector: TypeInfo | None = None
        self._is_closed = False

    def use_vectors(self, info: TypeInfo) -> None:
        """Let connections that are lent from now on write vectors, whose type has another number in every database."""
        self._vector = info

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Lend a connection in autocommit mode."""
        async with self._free:
            connection = await self._usable()
            self._know_vectors(connection)
            try:
                yield connection
            except BaseException:
                await connection.close()
                raise
            if self._is_closed:
                await connection.close()
            elif not connection.closed:
                self._idle.append(connection)

    async def close(self) -> None:
        """Close what is not lent now, and the rest when it comes back; closing twice is harmless."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _usable(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            # Nobody has asked it anything: if there is something to read, it is the server's farewell.
            if not connection.closed and not has_input(connection):
                return connection
            await connection.close()
        return await AsyncConnection.connect(self._conninfo, autocommit=True)

    def _know_vectors(self, connection: Connection) -> None:
        if self._vector is not None and connection.adapters.types.get(self._vector.oid) is None:
            self._vector.register(connection)
            connection.adapters.register_dumper(np.ndarray, type("Vector", (VectorDumper,), {"oid": self._vector.oid}))


@asynccontextmanager
async def postgres_errors(more_seconds: float = 0) -> AsyncIterator[None]:
    """Turn a server that is gone, silent or overloaded into an `UnavailableError`."""
    seconds = ANSWER_SECONDS + more_seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise UnavailableError(f"Postgres has not answered for {seconds:g} seconds") from error
    except OperationalError as error:
        raise UnavailableError(f"Postgres does not answer: {reason_of(error)}") from error


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
