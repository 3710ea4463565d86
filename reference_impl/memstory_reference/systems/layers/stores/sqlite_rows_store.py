"""The layers in one SQLite file: rows, their tokens, active sessions. Blocking; one thread at a time."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.database_store import Database, parts
from memstory_reference.storage.vector_matrix import usable
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer, buffer_data, buffer_of
from memstory_reference.systems.layers.records.record import (
    Layer,
    MemoryRecord,
    Standing,
    content_data,
    content_of,
    text_of,
)
from memstory_reference.text.token_sets import token_set

SCHEMA_VERSION = "1"

SCHEMA = """
CREATE TABLE IF NOT EXISTS namespaces (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, layer TEXT NOT NULL, UNIQUE (owner, layer)
);
CREATE TABLE IF NOT EXISTS records (
    row INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    session TEXT,
    count INTEGER NOT NULL,
    standing TEXT NOT NULL,
    superseded_by TEXT,
    vector BLOB,
    UNIQUE (id, namespace)
);
CREATE INDEX IF NOT EXISTS by_age ON records (namespace, standing, created_at DESC, id);
CREATE INDEX IF NOT EXISTS to_embed ON records (namespace, created_at) WHERE vector IS NULL;
CREATE TABLE IF NOT EXISTS tokens (
    namespace INTEGER NOT NULL, token TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (namespace, token, row)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
    owner TEXT NOT NULL, session TEXT NOT NULL, started_at TEXT NOT NULL, last_at TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (owner, session)
);
"""
_COLUMNS = (
    "r.row, r.id, n.owner, n.layer, r.content, r.created_at, r.updated_at, r.session, r.count, r.standing, "
    "r.superseded_by"
)
_HALF = re.compile("[\ud800-\udfff]")
_FROM = "FROM records AS r JOIN namespaces AS n ON n.number = r.namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A row as it was written: the vector that it has now, be it new or kept, and the tokens that found or find it."""

    record: MemoryRecord
    vector: NDArray[np.float32] | None
    tokens: frozenset[str]


class SqliteRows:
    """What is deleted is overwritten, in the file and in its log: a person who deletes a memory wants it gone."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._db.execute("INSERT OR IGNORE INTO about VALUES ('session_key', ?)", (secrets.token_hex(32),))

    def session_key(self) -> bytes:
        (value,) = self._db.execute("SELECT value FROM about WHERE name = 'session_key'").fetchone()
        return bytes.fromhex(value)

    def version(self) -> int:
        """Return a number that changes when another connection has written."""
        (number,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(number)

    def put(self, records: Sequence[MemoryRecord]) -> list[Written]:
        """Write all rows in one transaction."""
        with self._db.transaction():
            return [self._put(record) for record in records]

    def end(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> list[Written] | None:
        """Take an active session off and write what it leaves, in one transaction; None if it is not active."""
        with self._db.transaction():
            gone = self._db.execute("DELETE FROM sessions WHERE owner = ? AND session = ?", (owner, session)).rowcount
            return [self._put(record) for record in records] if gone else None

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the rows that exist, in the order of `ids`."""
        found = dict[str, MemoryRecord]()
        # Nothing has an id that no text of SQLite can be.
        for marks, part in parts([one for one in ids if not _HALF.search(one)]):
            rows = self._db.execute(
                f"SELECT {_COLUMNS} {_FROM} WHERE r.id IN ({marks}) AND n.owner = ?", (*part, owner)
            )
            found |= {row["id"]: _record(row) for row in rows}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def listed(
        self, owner: str, layers: Sequence[Layer], standings: Sequence[Standing], limit: int | None
    ) -> list[MemoryRecord]:
        rows = self._db.execute(
            f"SELECT {_COLUMNS} {_FROM} WHERE n.owner = ? AND n.layer IN ({_marks(layers)}) "
            f"AND r.standing IN ({_marks(standings)}) ORDER BY r.created_at DESC, r.id LIMIT ?",
            (owner, *layers, *standings, -1 if limit is None else limit),
        )
        return [_record(row) for row in rows]

    def vectors(self, owner: str, layer: Layer) -> list[tuple[str, NDArray[np.float32], datetime]]:
        """Return what is needed to search an owner's layer by vector."""
        rows = self._db.execute(
            f"SELECT r.id, r.vector, r.created_at {_FROM} WHERE n.owner = ? AND n.layer = ? "
            "AND r.standing = 'active' AND r.vector IS NOT NULL",
            (owner, layer),
        )
        return [(one, np.frombuffer(blob, np.float32), datetime.fromisoformat(created)) for one, blob, created in rows]

    def postings(self, owner: str, layer: Layer, token: str) -> NDArray[np.int64]:
        """Return the numbers of the rows that hold a token."""
        # Joined by SQLite and split by numpy: ten thousand rows one by one would take longer than all the rest.
        (joined,) = self._db.execute(
            "SELECT group_concat(t.row) FROM tokens AS t JOIN namespaces AS n ON n.number = t.namespace "
            "WHERE n.owner = ? AND n.layer = ? AND t.token = ?",
            (owner, layer, token),
        ).fetchone()
        return np.array(joined.split(",") if joined else [], dtype=np.int64)

    def numbered(self, numbers: Sequence[int], since: datetime | None) -> list[tuple[int, MemoryRecord]]:
        """Return rows by their numbers, newest first, ties by id."""
        found = []
        for marks, part in parts(numbers):
            rows = self._db.execute(
                f"SELECT {_COLUMNS} {_FROM} WHERE r.row IN ({marks}) AND r.created_at >= ?",
                (*part, iso_now(since) if since else ""),
            )
            found += [(int(row["row"]), _record(row)) for row in rows]
        found.sort(key=lambda pair: pair[1].id)
        return sorted(found, key=lambda pair: pair[1].created_at, reverse=True)

    def counts(self, owner: str) -> dict[tuple[Layer, Standing], int]:
        rows = self._db.execute(
            f"SELECT n.layer, r.standing, count(*) {_FROM} WHERE n.owner = ? GROUP BY 1, 2",
            (owner,),
        )
        return {(Layer(layer), Standing(standing)): count for layer, standing, count in rows}

    def without_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        rows = self._db.execute(
            f"SELECT {_COLUMNS} {_FROM} WHERE n.owner = ? AND r.standing = 'active' AND r.vector IS NULL "
            "ORDER BY r.created_at, r.id LIMIT ?",
            (owner, limit),
        )
        return [_record(row) for row in rows]

    def delete(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Delete rows; return those that existed."""
        with self._db.transaction():
            found = self.get(owner, ids)
            for record in found:
                self._remove(record)
        if found:
            self._db.forget_log()
        return found

    def delete_owner(self, owner: str) -> list[MemoryRecord]:
        every = self.listed(owner, list(Layer), list(Standing), None)
        return self.delete(owner, [record.id for record in every])

    def save(self, buffer: SessionMemoryBuffer) -> None:
        # Escaped, as a text of SQLite cannot hold half of a character, and what people send can.
        data = json.dumps(buffer_data(buffer))
        self._db.execute(
            "INSERT OR REPLACE INTO sessions (owner, session, started_at, last_at, data) VALUES (?, ?, ?, ?, ?)",
            (buffer.owner, buffer.session, iso_now(buffer.started_at), iso_now(buffer.last_at), data),
        )

    def load(self, owner: str, session: str) -> SessionMemoryBuffer | None:
        rows = self._db.execute("SELECT * FROM sessions WHERE owner = ? AND session = ?", (owner, session))
        return next((_buffer(row) for row in rows), None)

    def active(self, owner: str | None) -> list[SessionMemoryBuffer]:
        rows = self._db.execute(
            "SELECT * FROM sessions WHERE ?1 IS NULL OR owner = ?1 ORDER BY last_at, owner, session", (owner,)
        )
        return [_buffer(row) for row in rows]

    def forget_sessions(self, owner: str) -> int:
        gone = self._db.execute("DELETE FROM sessions WHERE owner = ?", (owner,)).rowcount
        if gone:
            self._db.forget_log()
        return int(gone)

    def _put(self, record: MemoryRecord) -> Written:
        namespace = self._namespace(record.owner, record.layer)
        vector = usable(record.vector)
        blob = None if vector is None else vector.tobytes()
        text = text_of(record.content)
        old = self._db.execute(
            "SELECT row, content, vector FROM records WHERE id = ? AND namespace = ?", (record.id, namespace)
        ).fetchone()
        tokens = token_set(text)
        if old is not None:
            old_text = text_of(content_of(record.layer, json.loads(old["content"])))
            self._unindex(namespace, old["row"], old_text)
            tokens |= token_set(old_text)
            blob = old["vector"] if blob is None and old_text == text else blob
        values = (
            json.dumps(content_data(record.content)),
            iso_now(record.created_at),
            iso_now(record.updated_at),
            record.session,
            record.count,
            record.standing,
            record.superseded_by,
            blob,
        )
        if old is None:
            row = self._db.execute(
                "INSERT INTO records (namespace, id, content, created_at, updated_at, session, count, standing, "
                "superseded_by, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (namespace, record.id, *values),
            ).lastrowid
        else:
            row = old["row"]
            self._db.execute(
                "UPDATE records SET content = ?, created_at = ?, updated_at = ?, session = ?, count = ?, standing = ?, "
                "superseded_by = ?, vector = ? WHERE row = ?",
                (*values, row),
            )
        if record.is_active:
            self._db.executemany(
                "INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)", [(namespace, token, row) for token in token_set(text)]
            )
        kept = None if blob is None else np.frombuffer(blob, np.float32)
        return Written(record=record, vector=kept, tokens=tokens)

    def _remove(self, record: MemoryRecord) -> None:
        namespace = self._namespace(record.owner, record.layer)
        (row,) = self._db.execute(
            "DELETE FROM records WHERE id = ? AND namespace = ? RETURNING row", (record.id, namespace)
        ).fetchone()
        self._unindex(namespace, row, text_of(record.content))

    def _unindex(self, namespace: int, row: int, text: str) -> None:
        self._db.executemany(
            "DELETE FROM tokens WHERE namespace = ? AND token = ? AND row = ?",
            [(namespace, token, row) for token in token_set(text)],
        )

    def _namespace(self, owner: str, layer: Layer) -> int:
        self._db.execute("INSERT OR IGNORE INTO namespaces (owner, layer) VALUES (?, ?)", (owner, layer))
        (number,) = self._db.execute(
            "SELECT number FROM namespaces WHERE owner = ? AND layer = ?", (owner, layer)
        ).fetchone()
        return int(number)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _record(row: sqlite3.Row) -> MemoryRecord:
    layer = Layer(row["layer"])
    return MemoryRecord(
        id=row["id"],
        owner=row["owner"],
        content=content_of(layer, json.loads(row["content"])),
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        session=row["session"],
        count=row["count"],
        standing=Standing(row["standing"]),
        superseded_by=row["superseded_by"],
    )


def _buffer(row: sqlite3.Row) -> SessionMemoryBuffer:
    return buffer_of(
        row["owner"],
        row["session"],
        datetime.fromisoformat(row["started_at"]),
        datetime.fromisoformat(row["last_at"]),
        json.loads(row["data"]),
    )
