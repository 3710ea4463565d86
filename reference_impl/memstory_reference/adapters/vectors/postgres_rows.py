"""Vector rows in Postgres, which several processes share: compared exactly, by pgvector.

Nothing of the rows is held here, for others write too. A writer holds its owner's row until the end of the transaction.
Tables are partitioned by owner, so every statement has the owner's number.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from typing import Any, LiteralString, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.vector_rows import (
    checked_collection,
    checked_ids,
    checked_name,
    checked_records,
    checked_vector,
    checked_where,
    fill_vectors,
    page_of_ids,
)
from memstory_reference.errors import OtherModelError, StoreConflictError
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.lane import NamedLocks
from memstory_reference.storage.postgres.connections_store import Connection, Connections, postgres_errors, vector_of
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.schema_store import MEMORY, open_schema, partition_by_owner
from memstory_reference.storage.vector_matrix import DIGITS

CALLS_AT_ONCE = 8
SLOWEST_PACE = 200
"""Rows a second, below which a batch counts as hanging."""

ALONE_SECONDS = 300.0
"""How much longer than for an answer it is waited for who is alone with an owner: he may have texts embedded."""

# Texts are bytes, for Postgres takes no NUL in its own. Keys are digests, for an index takes no long ones. Metadata are
# pairs in JSON: jsonb takes no NUL either, and gives another number back for one of many digits.
MIGRATIONS: Sequence[str] = (
    f"""
    CREATE TABLE owners (
        number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key bytea NOT NULL UNIQUE,
        collection text NOT NULL,
        name bytea NOT NULL
    );
    CREATE TABLE rows (
        owner int NOT NULL,
        key bytea NOT NULL,
        id bytea NOT NULL,
        text bytea NOT NULL,
        metadata text[] NOT NULL,
        vector vector NOT NULL
    );
    {partition_by_owner("rows", "PRIMARY KEY (owner, key)")}
    """,
)
_PUT: LiteralString = """
    INSERT INTO rows (owner, key, id, text, metadata, vector) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (owner, key) DO UPDATE
    SET text = excluded.text, metadata = excluded.metadata, vector = excluded.vector
"""
_SELECT: LiteralString = "SELECT id, text, metadata FROM rows WHERE owner = %s"
_COUNT: LiteralString = "SELECT count(*) FROM rows WHERE owner = %s"
_NUMBER: LiteralString = "SELECT number FROM owners WHERE key = %s"
# Vectors have length 1, so that a product is the cosine.
_NEAREST: LiteralString = "SELECT id, text, metadata, -(vector <#> %s) FROM rows WHERE owner = %s"


Rows: TypeAlias = list[tuple[Any, ...]]


class PostgresVectors:
    """A `VectorStore` in its own schema, open."""

    is_shared = True

    def __init__(self, place: PostgresPlace, connections: Connections, dimension: int | None) -> None:
        self._place = place
        self._connections = connections
        self._dimension = dimension
        self._locks = NamedLocks()
        self._held: dict[asyncio.Task[Any] | None, Connection] = {}
        self._is_open = True

    async def index(self, collection: str, owner: str) -> PostgresIndex:
        """Return the index of `owner`."""
        self._check_open()
        return PostgresIndex(self, checked_collection(collection), checked_name("owner", owner))

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        async with self.connection() as connection:
            found = await connection.execute("SELECT name FROM owners WHERE collection = %s", (collection,))
            return sorted(name.decode() for (name,) in await found.fetchall())

    @asynccontextmanager
    async def alone(self, owner: str) -> AsyncIterator[None]:
        """Be alone with an owner in one transaction, to which belongs what this task does to the store meanwhile."""
        # First among the tasks of this process: those that wait need no connection.
        async with self._locks.hold(owner), AsyncExitStack() as lent:
            async with postgres_errors(ALONE_SECONDS):
                connection = await lent.enter_async_context(self._lent())
                await lent.enter_async_context(connection.transaction())
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._place.lock_of(owner),))
            task = asyncio.current_task()
            self._held[task] = connection
            try:
                yield
            finally:
                del self._held[task]
            async with postgres_errors():
                await lent.aclose()

    async def close(self) -> None:
        """Let go of the server; a second call does nothing."""
        self._is_open = False
        await self._connections.close()

    async def dimension(self) -> int | None:
        """Return how many numbers a vector has; None before the first row."""
        if self._dimension is None:
            async with self.connection() as connection:
                self._dimension = await _dimension(connection)
        return self._dimension

    async def note_dimension(self, connection: Connection, dimension: int) -> None:
        """Note with the first row what the store holds; another process may have written one meanwhile."""
        if self._dimension is not None:
            return
        sql = "INSERT INTO about VALUES (%s, %s) ON CONFLICT DO NOTHING"
        await connection.execute(sql, (_DIMENSION, str(dimension)))
        if (held := await _dimension(connection)) != dimension:
            raise StoreConflictError(f"vector has {dimension} numbers, the store holds vectors of {held}")

    @asynccontextmanager
    async def connection(self, more_seconds: float = 0) -> AsyncIterator[Connection]:
        """Lend the connection of who is alone, else any."""
        held = self._held.get(asyncio.current_task())
        async with postgres_errors(more_seconds), AsyncExitStack() as lent:
            yield held if held is not None else await lent.enter_async_context(self._lent())

    def _lent(self) -> AbstractAsyncContextManager[Connection]:
        self._check_open()
        return self._connections.one()

    def _check_open(self) -> None:
        if not self._is_open:
            raise UnavailableError(f"the store in the schema {self._place.schema!r} was closed; open it again")


class PostgresIndex:
    """A `VectorIndex` over the rows of one owner."""

    def __init__(self, store: PostgresVectors, collection: str, owner: str) -> None:
        self._store = store
        self._names = (collection, owner)

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows, all or none; one without a vector keeps the vector that it has."""
        ready = checked_records(records, await self._store.dimension())
        if not ready:
            return
        bare = [_digest(row.id) for row in ready if row.vector is None]
        async with self._store.connection(len(ready) / SLOWEST_PACE) as connection, connection.transaction():
            number = await self._locked(connection)
            sql: LiteralString = "SELECT id, vector FROM rows WHERE owner = %s AND key = ANY (%s)"
            old = {one.decode(): vector_of(sent) for one, sent in await _fetched(connection, sql, number, bare)}
            whole = [(row, np.asarray(row.vector, np.float32)) for row in fill_vectors(ready, old.get)]
            await self._store.note_dimension(connection, len(whole[0][1]))
            values = [
                (number, _digest(row.id), row.id.encode(), row.text.encode(), _pairs(row.metadata), vector)
                for row, vector in whole
            ]
            async with connection.cursor() as cursor:
                await cursor.executemany(_PUT, values)

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Return the rows that exist, in the order of `ids`."""
        if not (wanted := checked_ids(ids)):
            return []
        rows = await self._rows(_SELECT + " AND key = ANY (%s)", [_digest(one) for one in wanted])
        found = {one.id: one for one in map(_record, rows)}
        return [found[one] for one in wanted if one in found]

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        """Return the k nearest rows, ties by id."""
        ready = checked_vector(vector, await self._store.dimension())
        condition, given = _condition(where)
        sql = _NEAREST + condition + " ORDER BY round((vector <#> %s) * %s), id LIMIT %s"
        rows = await self._rows(sql, *given, ready, 10.0**DIGITS, max(k, 0), first=[ready])
        cosines = [max(-1.0, min(1.0, round(row[3], DIGITS))) for row in rows]
        return [Match(record=_record(row), similarity=one) for row, one in zip(rows, cosines, strict=True)]

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        """Return rows by id order."""
        page_of_ids((), limit, offset)
        condition, given = _condition(where)
        rows = await self._rows(_SELECT + condition + " ORDER BY id LIMIT %s OFFSET %s", *given, limit, offset)
        return [_record(row) for row in rows]

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        """Delete rows; return the ids that existed."""
        if not (wanted := checked_ids(ids)):
            return []
        async with self._store.connection(len(wanted) / SLOWEST_PACE) as connection, connection.transaction():
            if (number := await self._number(connection, " FOR UPDATE")) is None:
                return []
            sql: LiteralString = "DELETE FROM rows WHERE owner = %s AND key = ANY (%s) RETURNING id"
            rows = await _fetched(connection, sql, number, [_digest(one) for one in wanted])
        gone = {one.decode() for (one,) in rows}
        return [one for one in wanted if one in gone]

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        """Count rows."""
        condition, given = _condition(where)
        rows = await self._rows(_COUNT + condition, *given)
        return int(rows[0][0]) if rows else 0

    async def _rows(self, sql: LiteralString, *given: Any, first: Sequence[Any] = ()) -> Rows:
        """Return the rows of a statement that has the owner's number after what comes `first`."""
        async with self._store.connection() as connection:
            number = await self._number(connection)
            return [] if number is None else await _fetched(connection, sql, *first, number, *given)

    async def _number(self, connection: Connection, locked: LiteralString = "") -> int | None:
        found = await (await connection.execute(_NUMBER + locked, (_digest(*self._names),))).fetchone()
        return None if found is None else int(found[0])

    async def _locked(self, connection: Connection) -> int:
        """Return the owner's number, given at the first row, and hold off whoever else writes."""
        number = await self._number(connection, " FOR UPDATE")
        if number is None:
            sql = "INSERT INTO owners (key, collection, name) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            collection, owner = self._names
            await connection.execute(sql, (_digest(*self._names), collection, owner.encode()))
            return await self._locked(connection)
        return number


async def open_postgres_vectors(
    place: PostgresPlace, *, model: str, dimension: int | None = None, memory: str = "topics and manager"
) -> PostgresVectors:
    """Open the store in `place`, whose schema is made or brought up to date; `memory` is what it is of.

    Raises:
        SetupError: the server refuses the URL's user or database, or has no pgvector.
        OtherModelError, StoreConflictError: its vectors are of another model, or something else made it.
        UnavailableError: nobody answers.
    """
    connections = Connections(place, size=CALLS_AT_ONCE)
    fresh = {MEMORY: memory, "model": model}
    about = await open_schema(connections, place, MIGRATIONS, fresh, with_vectors=True)
    held = int(about[_DIMENSION]) if _DIMENSION in about else None
    if about["model"] != model or (dimension or held) != (held or dimension):
        await connections.close()
        raise OtherModelError(
            f"the schema {place.schema!r} was made with the model {about['model']!r} ({held or 'unknown'} numbers a "
            f"vector), not {model!r} ({dimension or 'unknown'}): use that model, or another schema",
            about["model"],
        )
    return PostgresVectors(place, connections, held)


_DIMENSION = "dimension"


async def _dimension(connection: Connection) -> int | None:
    found = await (await connection.execute("SELECT value FROM about WHERE name = %s", (_DIMENSION,))).fetchone()
    return None if found is None else int(found[0])


async def _fetched(connection: Connection, sql: LiteralString, *given: Any) -> Rows:
    # In binary: as text, bytes and vectors take several times as long.
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(sql, given)
        return await cursor.fetchall()


def _condition(where: Mapping[str, Primitive] | None) -> tuple[LiteralString, list[list[str]]]:
    """Return what follows in SQL from a filter: each key in any of the forms in which its value may be written."""
    plain = checked_where(where)
    sql: LiteralString = " AND metadata && %s" * len(plain)
    return sql, [_pairs(*({key: form} for form in _forms(value))) for key, value in plain.items()]


def _forms(value: Primitive) -> Sequence[Primitive]:
    """Return the values that JSON writes otherwise and that are equal: 1 and 1.0, but not True."""
    if isinstance(value, (bool, str)):
        return [value]
    return [value, *(one for one in (int(value), float(value), -float(value)) if one == value)]


def _pairs(*metadata: Mapping[str, Primitive | None]) -> list[str]:
    return [json.dumps(pair, ensure_ascii=False) for one in metadata for pair in one.items()]


def _record(row: tuple[Any, ...]) -> Record:
    return Record(id=row[0].decode(), text=row[1].decode(), metadata=dict(map(json.loads, row[2])))


def _digest(*names: str) -> bytes:
    return blake2b(json.dumps(names).encode(), digest_size=16).digest()
