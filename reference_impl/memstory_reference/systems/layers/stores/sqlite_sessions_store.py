"""The active sessions in the layers' SQLite file: a row a session and a row a turn. Blocking; one thread at a time."""

from __future__ import annotations

import json
import logging
import sqlite3
from datetime import datetime

from memstory_reference.storage.checksum import checksum
from memstory_reference.storage.database_store import Database
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.records.candidates import (
    MAX_TURNS,
    SessionMemoryBuffer,
    SpokenTurn,
    buffer_data,
    buffer_of,
    turn_data,
    turn_of,
)

LOG = logging.getLogger(__name__)

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    owner TEXT NOT NULL, session TEXT NOT NULL, started_at TEXT NOT NULL, last_at TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (owner, session)
);
CREATE TABLE IF NOT EXISTS turns (
    owner TEXT NOT NULL, session TEXT NOT NULL, number INTEGER NOT NULL, extracted INTEGER NOT NULL,
    data TEXT NOT NULL, checksum TEXT, PRIMARY KEY (owner, session, number)
);
"""
_TURNS = "SELECT number, extracted, CAST(data AS BLOB) AS data, checksum FROM turns WHERE owner = ? AND session = ?"


class SqliteSessions:
    """What is said in a session is written once: a long session does not write itself again at each turn."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def save(self, buffer: SessionMemoryBuffer, *, rewrite: bool) -> None:
        """Write a session, of its turns those that are new or were looked at; with `rewrite` all of them."""
        key = (buffer.owner, buffer.session)
        with self._db.transaction():
            if rewrite:
                self._db.execute("DELETE FROM turns WHERE owner = ? AND session = ?", key)
            self._db.execute(
                "INSERT OR REPLACE INTO sessions (owner, session, started_at, last_at, data) VALUES (?, ?, ?, ?, ?)",
                (*key, iso_now(buffer.started_at), iso_now(buffer.last_at), json.dumps(buffer_data(buffer))),
            )
            first = buffer.turns[0].number if buffer.turns else 0
            found = self._db.execute(
                "SELECT number, extracted FROM turns WHERE owner = ? AND session = ? AND number >= ?", (*key, first)
            )
            stored = {row["number"]: bool(row["extracted"]) for row in found}
            new = [turn for turn in buffer.turns if turn.number not in stored]
            self._db.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", [(*key, *_turn_columns(turn)) for turn in new]
            )
            changed = [turn for turn in buffer.turns if stored.get(turn.number, turn.extracted) != turn.extracted]
            self._db.executemany(
                "UPDATE turns SET extracted = ? WHERE owner = ? AND session = ? AND number = ?",
                [(turn.extracted, *key, turn.number) for turn in changed],
            )
            self._db.execute(
                "DELETE FROM turns WHERE owner = ? AND session = ? AND number <= ? AND extracted",
                (*key, buffer.turn_count - MAX_TURNS),
            )
        if rewrite:
            self._db.forget_log()

    def load(self, owner: str, session: str, last: int | None) -> SessionMemoryBuffer | None:
        """Return an active session with its last turns, or all of them."""
        key = (owner, session)
        row = self._db.execute("SELECT * FROM sessions WHERE owner = ? AND session = ?", key).fetchone()
        if row is None:
            return None
        found = self._db.execute(f"{_TURNS} ORDER BY number DESC LIMIT ?", (*key, -1 if last is None else last))
        turns = [turn for one in found.fetchall() if (turn := _turn(one)) is not None]
        return _buffer(row, turns[::-1])

    def active(self, owner: str | None) -> list[SessionMemoryBuffer]:
        """Return the active sessions without their turns."""
        rows = self._db.execute(
            "SELECT * FROM sessions WHERE ?1 IS NULL OR owner = ?1 ORDER BY last_at, owner, session", (owner,)
        )
        return [buffer for row in rows.fetchall() if (buffer := _buffer(row, [])) is not None]

    def remove(self, owner: str, session: str | None = None) -> int:
        """Take a session off, or all of an owner; return how many there were. In the caller's transaction."""
        which = (owner,) if session is None else (owner, session)
        condition = "owner = ?" if session is None else "owner = ? AND session = ?"
        self._db.execute(f"DELETE FROM turns WHERE {condition}", which)  # noqa: S608  (one of two fixed texts)
        return int(self._db.execute(f"DELETE FROM sessions WHERE {condition}", which).rowcount)  # noqa: S608


def _turn_columns(turn: SpokenTurn) -> tuple[object, ...]:
    # Escaped, as a text of SQLite cannot hold half of a character, and what people send can.
    data = json.dumps(turn_data(turn))
    return turn.number, turn.extracted, data, checksum([turn.number, data])


def _turn(row: sqlite3.Row) -> SpokenTurn | None:
    data = row["data"].decode("utf-8", "replace")
    is_whole = row["checksum"] in (None, checksum([row["number"], data]))
    try:
        if is_whole:
            return turn_of(row["number"], json.loads(data), extracted=bool(row["extracted"]))
    except (ValueError, TypeError, KeyError):
        pass
    LOG.error("turn %s of a session is damaged and left out", row["number"])
    return None


def _buffer(row: sqlite3.Row, turns: list[SpokenTurn]) -> SessionMemoryBuffer | None:
    try:
        return buffer_of(
            row["owner"],
            row["session"],
            datetime.fromisoformat(row["started_at"]),
            datetime.fromisoformat(row["last_at"]),
            json.loads(row["data"]),
            turns,
        )
    except (ValueError, TypeError, KeyError) as error:
        LOG.error("an active session is damaged and begins again: %s", error)  # noqa: TRY400  (the reason says all)
        return None
