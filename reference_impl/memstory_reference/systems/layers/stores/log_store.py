"""What is kept apart from memory: append-only logs, never searched, in no prompt, each in a database of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from memstory_reference.storage.sql_database import SqlDatabase, SqlRow
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.stores.tables_store import moment_as_text


class LogRecord(Protocol):
    """What every record says."""

    @property
    def id(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def at(self) -> datetime: ...


R = TypeVar("R", bound=LogRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKind(Generic[R]):
    """One kind of records: its table, what makes a record of its fields, and how the columns that are its own are read.

    The last column may be a text that a person typed: then it holds any character, even half of one.
    """

    table: str
    make: Callable[..., R]
    own: Mapping[str, Callable[[str], object]]
    is_typed: bool

    @property
    def schema(self) -> str:
        """Return what makes the table."""
        texts = ", ".join(f"{name} TEXT NOT NULL" for name in ("owner", "session", "at", *self.own))
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table} (id TEXT PRIMARY KEY, {texts});"
            f"CREATE INDEX IF NOT EXISTS by_owner ON {self.table} (owner, at);"
        )

    @property
    def migrations(self) -> Mapping[int, str]:
        """Return what makes the table in Postgres, whose moments were no texts at first."""
        as_text = f'ALTER at TYPE text COLLATE "C" USING {moment_as_text("at")}'
        return {0: self.schema, 1: f"ALTER TABLE {self.table} {as_text};"}

    def row(self, record: R) -> list[str]:
        """Return a record as the values of its columns: texts, and names of things as JSON."""
        *own, last = (getattr(record, name) for name in self.own)
        # Escaped, as no database takes every character that people send.
        last = json.dumps(last if self.is_typed else list(last))
        return [record.id, record.owner, record.session, iso_now(record.at), *map(str, own), last]

    def record(self, row: SqlRow) -> R:
        """Return the record of a row; ValueError or TypeError for one that memstory has not written so."""
        identifier, owner, session, at, *own, last = row
        if self.is_typed:
            # As bytes in files of earlier versions.
            last = last.decode("utf-8", "surrogatepass") if isinstance(last, bytes) else json.loads(last)
        values = {name: read(value) for (name, read), value in zip(self.own.items(), (*own, last), strict=True)}
        return self.make(id=identifier, owner=owner, session=session, at=datetime.fromisoformat(at), **values)


class Log(Generic[R]):
    """Append, look, delete."""

    def __init__(self, database: SqlDatabase, kind: LogKind[R]) -> None:
        self._db = database
        self._kind = kind

    async def aappend(self, record: R) -> None:
        """Add a record; one of an id that is there changes nothing."""
        row = self._kind.row(record)
        sql = f"INSERT INTO {self._kind.table} VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608
        await self._db.lane.run(self._db.execute, sql, row)

    async def alist(self, owner: str | None) -> list[R]:
        """Return an owner's records, oldest first; None asks for everybody's. Damaged ones are left out."""
        condition, values = ("", ()) if owner is None else ("WHERE owner = ?", (owner,))
        columns = ", ".join(("id", "owner", "session", "at", *self._kind.own))
        sql = f"SELECT {columns} FROM {self._kind.table} {condition} ORDER BY at, id"  # noqa: S608  (our own names)
        rows = await self._db.lane.run(self._db.rows, sql, values)
        return [record for row in rows if (record := self._whole(row)) is not None]

    async def apurge(self, before: datetime) -> int:
        """Delete everybody's records from before this moment; return how many there were."""
        return await self._db.lane.run(self._delete, "at < ?", iso_now(before))

    async def adelete_owner(self, owner: str) -> int:
        """Delete an owner's records; return how many there were."""
        return await self._db.lane.run(self._delete, "owner = ?", owner)

    async def aclose(self) -> None:
        """Release the log; closing twice is harmless."""
        await self._db.aclose()

    def _delete(self, condition: str, value: str) -> int:
        gone = self._db.execute(f"DELETE FROM {self._kind.table} WHERE {condition}", (value,)).rowcount  # noqa: S608
        self._db.forget_log()
        return gone

    def _whole(self, row: SqlRow) -> R | None:
        try:
            return self._kind.record(row)
        except (ValueError, AttributeError, TypeError) as error:
            self._db.leave_out(f"record {row['id']} of {self._kind.table}", error, "Restore a backup")
            return None
