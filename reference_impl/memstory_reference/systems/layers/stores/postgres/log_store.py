"""An append-only log in its own Postgres schema, so that code that reads memory cannot read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Generic

from memstory_reference.storage.postgres.connections_store import Connections, postgres_errors
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.schema_store import open_schema
from memstory_reference.systems.layers.stores.logs import LogKind, R


class PostgresLog(Generic[R]):
    """A `Log` that several processes share."""

    def __init__(self, connections: Connections, kind: LogKind[R]) -> None:
        self._connections = connections
        self._kind = kind

    async def aappend(self, record: R) -> None:
        *names, last = self._kind.row(record)
        # A text of Postgres cannot hold every character that people send: JSON can.
        row = (*names, json.dumps(last) if self._kind.is_typed else last)
        sql = f"INSERT INTO {self._kind.table} VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"  # noqa: S608
        await self._write(sql, row)

    async def alist(self, owner: str | None) -> list[R]:
        columns = ", ".join(("id", "owner", "session", "at", *self._kind.columns))
        which = "%s::text IS NULL OR owner = %s"
        sql = f"SELECT {columns} FROM {self._kind.table} WHERE {which} ORDER BY at, id"  # noqa: S608  (our own names)
        async with postgres_errors(), self._connections.one() as connection:
            rows = await (await connection.execute(sql, (owner, owner))).fetchall()
        read = ((*names, json.loads(last) if self._kind.is_typed else last) for *names, last in rows)
        return [self._kind.record(row) for row in read]

    async def apurge(self, before: datetime) -> int:
        return await self._write(f"DELETE FROM {self._kind.table} WHERE at < %s", (before,))  # noqa: S608

    async def adelete_owner(self, owner: str) -> int:
        return await self._write(f"DELETE FROM {self._kind.table} WHERE owner = %s", (owner,))  # noqa: S608

    async def aclose(self) -> None:
        await self._connections.close()

    async def _write(self, sql: str, values: Sequence[object]) -> int:
        async with postgres_errors(), self._connections.one() as connection:
            return (await connection.execute(sql, values)).rowcount


async def open_log(place: PostgresPlace, kind: LogKind[R]) -> PostgresLog[R]:
    """Open the log in `place`; raises as `open_schema` does."""
    own = ", ".join(f"{column} text NOT NULL" for column in kind.columns)
    migration = (
        f'CREATE TABLE {kind.table} (id text COLLATE "C" PRIMARY KEY, owner text NOT NULL, session text NOT NULL, '
        f"at timestamptz NOT NULL, {own}); CREATE INDEX by_owner ON {kind.table} (owner, at);"
    )
    connections = Connections(place, size=1)
    await open_schema(connections, place, [migration])
    return PostgresLog(connections, kind)
