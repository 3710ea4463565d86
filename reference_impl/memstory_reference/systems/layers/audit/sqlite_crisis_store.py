"""The crisis log in a SQLite file of its own, so that nothing that reads memory can read it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from memstory_reference.errors import UnavailableError
from memstory_reference.systems.layers.audit.models import ClassifierPath, CrisisLevel, CrisisLogRecord
from memstory_reference.systems.layers.identity import iso_now

T = TypeVar("T")

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
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(_SCHEMA)
        self._turn = threading.Lock()

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
        await self._call(lambda: self._db.execute("INSERT OR IGNORE INTO crisis_log VALUES (?, ?, ?, ?, ?, ?, ?)", row))

    async def alist(self, owner: str) -> list[CrisisLogRecord]:
        rows = await self._call(
            lambda: self._db.execute("SELECT * FROM crisis_log WHERE owner = ? ORDER BY at, id", (owner,)).fetchall()
        )
        return [_record(*row) for row in rows]

    async def apurge(self, before: datetime) -> int:
        return await self._call(
            lambda: self._db.execute("DELETE FROM crisis_log WHERE at < ?", (iso_now(before),)).rowcount
        )

    async def aclose(self) -> None:
        await self._call(self._db.close)

    async def _call(self, call: Callable[[], T]) -> T:
        def alone() -> T:
            with self._turn:
                return call()

        try:
            return await asyncio.to_thread(alone)
        except sqlite3.OperationalError as error:
            raise UnavailableError(f"the crisis log cannot be used now: {error}") from error


def _record(  # noqa: PLR0917  (the row's columns)
    identifier: str, owner: str, session: str, at: str, level: str, path: str, signals: str
) -> CrisisLogRecord:
    return CrisisLogRecord(
        id=identifier,
        owner=owner,
        session=session,
        at=datetime.fromisoformat(at),
        level=CrisisLevel(level),
        classifier_path=ClassifierPath(path),
        signals=tuple(json.loads(signals)),
    )
