"""The crisis log in a SQLite file of its own, so that nothing that reads memory can read it."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from pathlib import Path

from memstory_reference.storage.database_store import Database
from memstory_reference.systems.layers.audit.crisis_events import ClassifierPath, CrisisLevel, CrisisLogRecord
from memstory_reference.systems.layers.identity import iso_now

_SCHEMA = """
CREATE TABLE IF NOT EXISTS crisis_log (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, session TEXT NOT NULL, at TEXT NOT NULL, level TEXT NOT NULL,
    classifier_path TEXT NOT NULL, signals TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_owner ON crisis_log (owner, at);
"""


class SqliteCrisisLog:
    """A `CrisisLogBackend` that outlives the process."""

    def __init__(self, file: Path) -> None:
        self._db = Database(file, schema=_SCHEMA)

    async def aappend(self, record: CrisisLogRecord) -> None:
        row = (
            record.id,
            record.owner,
            record.session,
            iso_now(record.at),
            record.level,
            record.classifier_path,
            json.dumps(list(record.signals)),
        )
        await self._db.lane.run(self._db.execute, "INSERT OR IGNORE INTO crisis_log VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    async def alist(self, owner: str) -> list[CrisisLogRecord]:
        return await self._db.lane.run(self._listed, owner)

    async def apurge(self, before: datetime) -> int:
        return await self._db.lane.run(self._purge, iso_now(before))

    async def aclose(self) -> None:
        await self._db.aclose()

    def _listed(self, owner: str) -> list[CrisisLogRecord]:
        rows = self._db.execute("SELECT * FROM crisis_log WHERE owner = ? ORDER BY at, id", (owner,))
        return [_record(row) for row in rows]

    def _purge(self, before: str) -> int:
        gone = self._db.execute("DELETE FROM crisis_log WHERE at < ?", (before,)).rowcount
        self._db.forget_log()
        return gone


def _record(row: sqlite3.Row) -> CrisisLogRecord:
    return CrisisLogRecord(
        id=row["id"],
        owner=row["owner"],
        session=row["session"],
        at=datetime.fromisoformat(row["at"]),
        level=CrisisLevel(row["level"]),
        classifier_path=ClassifierPath(row["classifier_path"]),
        signals=tuple(json.loads(row["signals"])),
    )
