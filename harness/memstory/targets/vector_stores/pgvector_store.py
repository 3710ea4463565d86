"""Postgres with pgvector and nothing else: a table of rows, searched exactly, in a schema a workspace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.target import Capability, Environment, Target
from memstory.targets.embedders import Embedders
from memstory.targets.embedding_factory import EmbeddingFactory
from memstory.targets.vector_stores.postgres_store import (
    OPTION,
    PostgresServers,
    address_within,
    declining,
    prepare,
    schema_of,
)
from memstory.targets.vector_stores.row_target import ABLE, Row, RowsTarget, Wanted

if TYPE_CHECKING:
    from psycopg import Connection

CAPABILITIES: Final[frozenset[Capability]] = ABLE | {"add.batch_atomic", "search.where", f"option.{OPTION}"}
_COLUMNS: Final = ("id", "user_name", "session", "kind", "key", "created_at", "place", "text", "metadata")
_FIELDS: Final = ("id", "user", *_COLUMNS[2:])
_READ: Final = f"id::text, {', '.join(_COLUMNS[1:])}"
_TABLE: Final = """CREATE TABLE IF NOT EXISTS memories (
    id uuid PRIMARY KEY, user_name text NOT NULL, session text, kind text, key text, created_at text NOT NULL,
    place bigint NOT NULL, text text NOT NULL, metadata jsonb NOT NULL, vector vector({size}) NOT NULL)"""
_WRITE: Final = f"""INSERT INTO memories ({", ".join(_COLUMNS)}, vector)
    VALUES ({", ".join("%s" for _ in _COLUMNS)}, %s) ON CONFLICT (id) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in (*_COLUMNS[1:], "vector"))}"""  # noqa: S608  (our own words)


class PgvectorTarget(RowsTarget):
    """One connection; every write is a transaction."""

    able = CAPABILITIES
    name = "pgvector"
    _connection: Connection
    _server: str
    _url: str

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders)
        self._servers = servers

    async def open(self, env: Environment, clock: Clock) -> None:
        self._url = await self._servers.url(env)
        self._server = await prepare(self._url, env.workspace)
        await super().open(env, clock)

    def connect(self, env: Environment, size: int) -> None:
        import psycopg  # noqa: PLC0415  (a vendor: only where it was chosen)

        self._connection = psycopg.connect(address_within(self._url, schema_of(env.workspace)), autocommit=True)
        self._connection.execute(_TABLE.format(size=size))
        self._connection.execute("CREATE INDEX IF NOT EXISTS memories_of ON memories (user_name)")

    def disconnect(self) -> None:
        self._connection.close()

    def store_name(self) -> str:
        return self._server

    def write(self, rows: Sequence[Row]) -> None:
        values = [
            (*(getattr(row, name) for name in _FIELDS[:-1]), json.dumps(dict(row.metadata)), _vector(row.vector))
            for row in rows
        ]
        with declining(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(_WRITE, values)

    def find(self, wanted: Wanted) -> list[Row]:
        condition, values = _condition(wanted)
        return [_row(found) for found in self._asked(f"SELECT {_READ} FROM memories WHERE {condition}", values)]  # noqa: S608  (our own words)

    def near(self, vector: Sequence[float], wanted: Wanted, count: int) -> list[tuple[Row, float]]:
        condition, values = _condition(wanted)
        # Exact: without an index on vectors, Postgres compares all rows of the user.
        sql = f"""SELECT {_READ}, 1 - (vector <=> %s::vector) FROM memories WHERE {condition}
                  ORDER BY vector <=> %s::vector, place LIMIT %s"""  # noqa: S608  (our own words)
        asked = _vector(vector)
        return [(_row(found[:-1]), found[-1]) for found in self._asked(sql, [asked, *values, asked, max(count, 0)])]

    def remove(self, ids: Sequence[str]) -> None:
        self._connection.execute("DELETE FROM memories WHERE id = ANY(%s::uuid[])", [list(ids)])

    def _asked(self, sql: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        from psycopg import DataError  # noqa: PLC0415  (a vendor: only where it was chosen)

        try:
            return self._connection.execute(sql, values).fetchall()
        except DataError:
            return []  # an id or a name that Postgres cannot hold is that of no row


class PgvectorFactory(EmbeddingFactory):
    """Postgres with pgvector, with the embedder that the reference uses too; MEMSTORY_POSTGRES names the server."""

    name: ClassVar[str] = "pgvector"
    spec: ClassVar[str | None] = "memstory.targets.vector_stores.pgvector_store:PgvectorFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES
    _servers: PostgresServers

    async def start(self, folder: Path) -> None:
        self._servers = PostgresServers(folder)

    def target(self) -> Target:
        return PgvectorTarget(self._embedders, self._servers)

    async def stop(self) -> None:
        await self._servers.stop()
        await super().stop()


def _condition(wanted: Wanted) -> tuple[str, list[Any]]:
    equal = {"user_name": wanted.user, "id::text": wanted.id, "key": wanted.key, "session": wanted.session}
    parts: list[tuple[str, list[Any]]] = [
        (f"{name} = %s", [value]) for name, value in equal.items() if value is not None
    ]
    if wanted.kinds:
        parts.append(("kind = ANY(%s)", [list(wanted.kinds)]))
    # Equal, and of the same type; `@>` alone would also find a list that holds the value.
    parts += [("metadata -> %s = %s::jsonb", [name, json.dumps(value)]) for name, value in wanted.where.items()]
    return " AND ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def _vector(vector: Sequence[float]) -> str:
    return f"[{','.join(map(str, vector))}]"


def _row(found: Sequence[Any]) -> Row:
    fields: Mapping[str, Any] = dict(zip(_FIELDS, found, strict=True))
    return Row(**fields)
