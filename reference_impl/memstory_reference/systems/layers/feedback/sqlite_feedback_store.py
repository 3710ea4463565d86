"""Feedback in a SQLite file of its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from memstory_reference.errors import UnavailableError
from memstory_reference.systems.layers.feedback.models import FeedbackLabel, FeedbackSource, SessionFeedbackRecord
from memstory_reference.systems.layers.identity import iso_now

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS session_feedback (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, session TEXT NOT NULL, at TEXT NOT NULL, label TEXT NOT NULL,
    source TEXT NOT NULL, comment TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_owner ON session_feedback (owner, at);
"""


class SqliteSessionFeedback:
    """A `SessionFeedbackBackend` that outlives the process."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        for pragma in ("journal_mode = WAL", "secure_delete = ON"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(_SCHEMA)
        self._turn = threading.Lock()

    async def aappend(self, record: SessionFeedbackRecord) -> None:
        row = (
            record.id,
            record.owner,
            record.session,
            iso_now(record.at),
            record.label,
            record.source,
            record.comment,
        )
        await self._call(
            lambda: self._db.execute("INSERT OR IGNORE INTO session_feedback VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        )

    async def alist(self, owner: str) -> list[SessionFeedbackRecord]:
        rows = await self._call(
            lambda: self._db.execute(
                "SELECT * FROM session_feedback WHERE owner = ? ORDER BY at, id", (owner,)
            ).fetchall()
        )
        return [_record(*row) for row in rows]

    async def adelete_owner(self, owner: str) -> int:
        def delete() -> int:
            gone = self._db.execute("DELETE FROM session_feedback WHERE owner = ?", (owner,)).rowcount
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return int(gone)

        return await self._call(delete)

    async def aclose(self) -> None:
        await self._call(self._db.close)

    async def _call(self, call: Callable[[], T]) -> T:
        def alone() -> T:
            with self._turn:
                return call()

        try:
            return await asyncio.to_thread(alone)
        except sqlite3.OperationalError as error:
            raise UnavailableError(f"the feedback cannot be used now: {error}") from error


def _record(  # noqa: PLR0917  (the row's columns)
    identifier: str, owner: str, session: str, at: str, label: str, source: str, comment: str
) -> SessionFeedbackRecord:
    return SessionFeedbackRecord(
        id=identifier,
        owner=owner,
        session=session,
        at=datetime.fromisoformat(at),
        label=FeedbackLabel(label),
        source=FeedbackSource(source),
        comment=comment,
    )
