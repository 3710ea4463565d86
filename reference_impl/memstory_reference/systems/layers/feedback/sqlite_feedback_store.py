"""Feedback in a SQLite file of its own."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from memstory_reference.storage.database_store import Database
from memstory_reference.systems.layers.feedback.session_labels import (
    FeedbackLabel,
    FeedbackSource,
    SessionFeedbackRecord,
)
from memstory_reference.systems.layers.identity import iso_now

# The comment is kept as bytes: a text of SQLite cannot hold every character that people send, such as half of one.
_HALVES_TOO = "surrogatepass"
_OF_OWNER = (
    "SELECT id, owner, session, at, label, source, CAST(comment AS BLOB) AS comment FROM session_feedback "
    "WHERE owner = ? ORDER BY at, id"
)
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
        self._db = Database(file, schema=_SCHEMA)

    async def aappend(self, record: SessionFeedbackRecord) -> None:
        row = (
            record.id,
            record.owner,
            record.session,
            iso_now(record.at),
            record.label,
            record.source,
            record.comment.encode("utf-8", _HALVES_TOO),
        )
        await self._db.lane.run(
            self._db.execute, "INSERT OR IGNORE INTO session_feedback VALUES (?, ?, ?, ?, ?, ?, ?)", row
        )

    async def alist(self, owner: str) -> list[SessionFeedbackRecord]:
        return await self._db.lane.run(self._listed, owner)

    async def adelete_owner(self, owner: str) -> int:
        return await self._db.lane.run(self._delete_owner, owner)

    async def aclose(self) -> None:
        await self._db.aclose()

    def _listed(self, owner: str) -> list[SessionFeedbackRecord]:
        return [_record(row) for row in self._db.execute(_OF_OWNER, (owner,))]

    def _delete_owner(self, owner: str) -> int:
        gone = self._db.execute("DELETE FROM session_feedback WHERE owner = ?", (owner,)).rowcount
        self._db.forget_log()
        return gone


def _record(row: sqlite3.Row) -> SessionFeedbackRecord:
    return SessionFeedbackRecord(
        id=row["id"],
        owner=row["owner"],
        session=row["session"],
        at=datetime.fromisoformat(row["at"]),
        label=FeedbackLabel(row["label"]),
        source=FeedbackSource(row["source"]),
        comment=row["comment"].decode("utf-8", _HALVES_TOO),
    )
