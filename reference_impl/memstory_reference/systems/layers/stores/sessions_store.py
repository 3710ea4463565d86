"""The active sessions: a row a session and a row a turn. Blocking; one thread at a time."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memstory_reference.storage.sql_database import EVERY, SqlDatabase, SqlRow, checksum
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


@dataclass(frozen=True, slots=True)
class SessionRows:
    """What is said in a session is written once: a long session does not write itself again at each turn."""

    _db: SqlDatabase

    def save(self, buffer: SessionMemoryBuffer, *, rewrite: bool) -> None:
        """Write a session, of its turns those that are new or were looked at; with `rewrite` all of them."""
        with self._db.transaction(buffer.owner):
            if rewrite:
                key = (buffer.owner, buffer.session)
                self._db.execute("DELETE FROM turns WHERE owner = ? AND session = ?", key)
            self.write(buffer)
        if rewrite:
            self._db.forget_log()

    def write(self, buffer: SessionMemoryBuffer) -> None:
        """Write a session, and of its turns those that are new or were looked at, in the caller's transaction."""
        key = (buffer.owner, buffer.session)
        self._db.execute(
            "INSERT INTO sessions (owner, session, started_at, last_at, data) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (owner, session) DO UPDATE SET started_at = excluded.started_at, "
            "last_at = excluded.last_at, data = excluded.data",
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
            "DELETE FROM turns WHERE owner = ? AND session = ? AND number <= ? AND extracted = 1",
            (*key, buffer.turn_count - MAX_TURNS),
        )

    def load(self, owner: str, session: str, last: int | None) -> SessionMemoryBuffer | None:
        """Return an active session with its last turns, or all of them."""
        key = (owner, session)
        rows = self._db.rows("SELECT * FROM sessions WHERE owner = ? AND session = ?", key)
        if not rows:
            return None
        found = self._db.rows(
            "SELECT number, extracted, data, checksum FROM turns WHERE owner = ? AND session = ? "
            "ORDER BY number DESC LIMIT ?",
            (*key, EVERY if last is None else last),
        )
        turns = [turn for one in found if (turn := _turn(one)) is not None]
        return _buffer(rows[0], turns[::-1])

    def active(self, owner: str | None) -> list[SessionMemoryBuffer]:
        """Return the active sessions without their turns."""
        condition, values = ("", ()) if owner is None else ("WHERE owner = ?", (owner,))
        rows = self._db.rows(f"SELECT * FROM sessions {condition} ORDER BY last_at, owner, session", values)  # noqa: S608
        return [buffer for row in rows if (buffer := _buffer(row, [])) is not None]

    def forget(self, owner: str) -> int:
        """Drop an owner's active sessions; return how many there were."""
        with self._db.transaction(owner):
            gone = self.remove(owner)
        if gone:
            self._db.forget_log()
        return gone

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


def _turn(row: SqlRow) -> SpokenTurn | None:
    try:
        if row["checksum"] in (None, checksum([row["number"], row["data"]])):
            return turn_of(row["number"], json.loads(row["data"]), extracted=bool(row["extracted"]))
    except (ValueError, TypeError, KeyError):
        pass
    LOG.error("turn %s of a session is damaged and left out", row["number"])
    return None


def _buffer(row: SqlRow, turns: Sequence[SpokenTurn]) -> SessionMemoryBuffer | None:
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
