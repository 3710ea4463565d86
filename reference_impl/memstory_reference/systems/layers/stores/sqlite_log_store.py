"""An append-only log in its own SQLite file, so that code that reads memory cannot read it."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Generic

from memstory_reference.storage.database_store import Database
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.stores.logs import LogKind, R

_HALVES_TOO = "surrogatepass"


class SqliteLog(Generic[R]):
    """A `Log` that outlives the process, but for one `IN_MEMORY` (CF-4)."""

    def __init__(self, file: Path, kind: LogKind[R]) -> None:
        first, second, last = kind.columns
        texts = ", ".join(f"{name} TEXT NOT NULL" for name in ("owner", "session", "at", *kind.columns))
        schema = (
            f"CREATE TABLE IF NOT EXISTS {kind.table} (id TEXT PRIMARY KEY, {texts});"
            f"CREATE INDEX IF NOT EXISTS by_owner ON {kind.table} (owner, at);"
        )
        self._kind = kind
        self._db = Database(file, schema=schema)
        self._select = (
            f"SELECT id, owner, session, at, {first}, {second}, CAST({last} AS BLOB) FROM {kind.table} "  # noqa: S608
            "WHERE ?1 IS NULL OR owner = ?1 ORDER BY at, id"
        )

    async def aappend(self, record: R) -> None:
        *names, at, first, second, last = self._kind.row(record)
        row = (*names, iso_now(at), first, second, last.encode("utf-8", _HALVES_TOO) if self._kind.is_typed else last)
        sql = f"INSERT OR IGNORE INTO {self._kind.table} VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  (our own name)
        await self._db.lane.run(self._db.execute, sql, row)

    async def alist(self, owner: str | None) -> list[R]:
        rows = await self._db.lane.run(lambda: self._db.execute(self._select, (owner,)).fetchall())
        return [record for row in rows if (record := self._whole(row)) is not None]

    async def apurge(self, before: datetime) -> int:
        return await self._db.lane.run(self._delete, "at < ?", iso_now(before))

    async def adelete_owner(self, owner: str) -> int:
        return await self._db.lane.run(self._delete, "owner = ?", owner)

    async def aclose(self) -> None:
        await self._db.aclose()

    def _delete(self, condition: str, value: str) -> int:
        gone = self._db.execute(f"DELETE FROM {self._kind.table} WHERE {condition}", (value,)).rowcount  # noqa: S608
        self._db.forget_log()
        return gone

    def _whole(self, row: sqlite3.Row) -> R | None:
        try:
            return self._record(row)
        except (ValueError, AttributeError, TypeError) as error:
            self._db.leave_out(f"record {row['id']} of {self._kind.table}", error, "Restore a backup")
            return None

    def _record(self, row: sqlite3.Row) -> R:
        identifier, owner, session, at, first, second, last = row
        text = last.decode("utf-8", _HALVES_TOO)
        return self._kind.record((identifier, owner, session, datetime.fromisoformat(at), first, second, text))
