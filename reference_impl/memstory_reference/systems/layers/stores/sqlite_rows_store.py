"""The layers in one SQLite file: rows and their tokens. Blocking; one thread at a time."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.checksum import checksum
from memstory_reference.storage.database_store import Database, batches_of_values
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable
from memstory_reference.storage.vector_matrix import normalized_or_none, unit_vector
from memstory_reference.systems.layers.identity import iso_now, microseconds
from memstory_reference.systems.layers.records.record import (
    Layer,
    MemoryRecord,
    Standing,
    content_data,
    content_of,
    text_of,
)
from memstory_reference.systems.layers.stores.sqlite_sessions_store import SCHEMA as SESSIONS
from memstory_reference.systems.layers.stores.sqlite_sessions_store import SqliteSessions
from memstory_reference.text.token_sets import token_set

SCHEMA_VERSION = "2"

SCHEMA = (
    SESSIONS
    + """
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
    checksum TEXT,
    UNIQUE (id, namespace)
);
CREATE TABLE IF NOT EXISTS recall_off (owner TEXT PRIMARY KEY);
CREATE INDEX IF NOT EXISTS by_age ON records (namespace, standing, created_at DESC, id);
CREATE INDEX IF NOT EXISTS to_embed ON records (namespace, created_at) WHERE vector IS NULL;
CREATE TABLE IF NOT EXISTS tokens (
    namespace INTEGER NOT NULL, token TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (namespace, token, row)
) WITHOUT ROWID;
"""
)
_COLUMNS = (
    "r.row, r.namespace, r.id, n.owner, n.layer, CAST(r.content AS BLOB) AS content, r.created_at, r.updated_at, "
    "r.session, r.count, r.standing, r.superseded_by, r.checksum"
)
_FROM = "FROM records AS r JOIN namespaces AS n ON n.number = r.namespace"


def _text(row: sqlite3.Row) -> str:
    return text_of(content_of(Layer(row["layer"]), json.loads(row["content"])))


EMBEDDED_FILE = EmbeddedFile(
    name="memory.sqlite3",
    schema=SCHEMA,
    version=SCHEMA_VERSION,
    tables=[
        EmbeddedTable(
            select=f"SELECT {_COLUMNS} {_FROM} ORDER BY r.row",
            update="UPDATE records SET vector = ? WHERE row = ?",
            text=_text,
        )
    ],
)
_HALF = re.compile("[\ud800-\udfff]")
_HELD = "FROM tokens AS t JOIN namespaces AS n ON n.number = t.namespace WHERE n.owner = ? AND n.layer = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRow:
    """A row as it was written: the vector that it has now, be it new or kept, and the tokens that found or find it."""

    record: MemoryRecord
    vector: NDArray[np.float32] | None
    tokens: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRow:
    """A row that was deleted, with the tokens that found it; None of a damaged one, whose text nobody knows."""

    id: str
    layer: Layer | None
    tokens: frozenset[str] | None


class SqliteRows:
    """What is deleted is overwritten, in the file and in its log: a person who deletes a memory wants it gone."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.sessions = SqliteSessions(database)
        self._db.execute("INSERT OR IGNORE INTO about VALUES ('session_key', ?)", (secrets.token_hex(32),))
        self._check_in()

    def session_key(self) -> bytes:
        (value,) = self._db.execute("SELECT value FROM about WHERE name = 'session_key'").fetchone()
        try:
            return bytes.fromhex(value)
        except ValueError as error:
            raise UnavailableError(
                f"{self._db.file}: the key that names the sessions of this store is damaged; restore a backup"
            ) from error

    def version(self) -> int:
        """Return a number that changes when another connection has written."""
        (number,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(number)

    def put(self, records: Sequence[MemoryRecord]) -> list[WrittenRow]:
        """Write all rows in one transaction."""
        with self._db.transaction():
            return [self._put(record) for record in records]

    def end(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> list[WrittenRow] | None:
        """Take an active session off and write what it leaves, in one transaction; None if it is not active."""
        with self._db.transaction():
            gone = self.sessions.remove(owner, session)
            return [self._put(record) for record in records] if gone else None

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the rows that exist, in the order of `ids`."""
        found = dict[str, MemoryRecord]()
        # Nothing has an id that no text of SQLite can be.
        for marks, part in batches_of_values([one for one in ids if not _HALF.search(one)]):
            rows = self._db.rows(f"SELECT {_COLUMNS} {_FROM} WHERE r.id IN ({marks}) AND n.owner = ?", (*part, owner))
            found |= {record.id: record for record in self._whole(rows)}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def list_records(
        self, owner: str, layers: Sequence[Layer], standings: Sequence[Standing], limit: int | None
    ) -> list[MemoryRecord]:
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE n.owner = ? AND n.layer IN ({_marks(layers)}) "
            f"AND r.standing IN ({_marks(standings)}) ORDER BY r.created_at DESC, r.id LIMIT ?",
            (owner, *layers, *standings, -1 if limit is None else limit),
        )
        return self._whole(rows)

    def vectors(self, owner: str, layer: Layer) -> list[tuple[str, NDArray[np.float32], int]]:
        """Return what is needed to search an owner's layer by vector."""
        rows = self._db.rows(
            f"SELECT r.id, r.vector, r.created_at {_FROM} WHERE n.owner = ? AND n.layer = ? "
            "AND r.standing = 'active' AND r.vector IS NOT NULL",
            (owner, layer),
        )
        return [found for row in rows if (found := _vector_row(*row)) is not None]

    def postings(self, owner: str, layer: Layer, tokens: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        """Return the numbers of the rows that hold each token."""
        found = dict.fromkeys(tokens, np.zeros(0, np.int64))
        for marks, part in batches_of_values(tokens):
            # Joined by SQLite and split by numpy: ten thousand rows one by one would take longer than all the rest.
            rows = self._db.rows(
                f"SELECT t.token, group_concat(t.row) {_HELD} AND t.token IN ({marks}) GROUP BY t.token",
                (owner, layer, *part),
            )
            found |= {token: np.array(joined.split(","), dtype=np.int64) for token, joined in rows}
        return found

    def by_numbers(self, numbers: Sequence[int], since: datetime | None) -> list[tuple[int, str, int]]:
        """Return the number, the id and the moment in microseconds of rows, newest first, ties by id."""
        found = list[tuple[int, str, int]]()
        for marks, part in batches_of_values(numbers):
            rows = self._db.rows(
                f"SELECT r.row, r.id, r.created_at {_FROM} WHERE r.row IN ({marks}) AND r.created_at >= ?",
                (*part, iso_now(since) if since else ""),
            )
            found += [
                (row, name, at) for row, name, text in rows if _is_text(name) and (at := _moment(text)) is not None
            ]
        return sorted(found, key=lambda one: (-one[2], one[1]))

    def counts(self, owner: str) -> dict[tuple[Layer, Standing], int]:
        rows = self._db.rows(
            f"SELECT n.layer, r.standing, count(*) {_FROM} WHERE n.owner = ? AND n.layer IN ({_marks(list(Layer))}) "
            f"AND r.standing IN ({_marks(list(Standing))}) GROUP BY 1, 2",
            (owner, *Layer, *Standing),
        )
        return {(Layer(layer), Standing(standing)): count for layer, standing, count in rows}

    def without_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE n.owner = ? AND r.standing = 'active' AND r.vector IS NULL "
            "ORDER BY r.created_at, r.id LIMIT ?",
            (owner, limit),
        )
        return self._whole(rows)

    def damaged_ids(self, owner: str) -> list[str]:
        """Return the ids of rows that were changed outside memstory."""
        rows = self._db.rows(f"SELECT {_COLUMNS} {_FROM} WHERE n.owner = ? ORDER BY r.row", (owner,))
        return [row["id"] for row in rows if self._record(row) is None]

    def delete(self, owner: str, ids: Sequence[str]) -> list[DeletedRow]:
        """Delete rows, damaged ones too; return those that existed, in the order of `ids`."""
        found = dict[str, DeletedRow]()
        with self._db.transaction():
            for marks, part in batches_of_values([one for one in ids if not _HALF.search(one)]):
                rows = self._db.rows(
                    f"SELECT {_COLUMNS} {_FROM} WHERE r.id IN ({marks}) AND n.owner = ?", (*part, owner)
                )
                found |= {row["id"]: self._remove(row) for row in rows}
        if found:
            self._db.forget_log()
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def delete_owner(self, owner: str) -> list[DeletedRow]:
        self.set_recall(owner, on=True)
        with self._db.transaction():  # by no ids: one may be damaged
            rows = self._db.rows(f"SELECT {_COLUMNS} {_FROM} WHERE n.owner = ?", (owner,))
            gone = [self._remove(row) for row in rows]
        if gone:
            self._db.forget_log()
        return gone

    def set_recall(self, owner: str, *, on: bool) -> None:
        sql = "DELETE FROM recall_off WHERE owner = ?" if on else "INSERT OR IGNORE INTO recall_off VALUES (?)"
        self._db.execute(sql, (owner,))

    def recall(self, owner: str) -> bool:
        return self._db.execute("SELECT 1 FROM recall_off WHERE owner = ?", (owner,)).fetchone() is None

    def forget_sessions(self, owner: str) -> int:
        with self._db.transaction():
            gone = self.sessions.remove(owner)
        if gone:
            self._db.forget_log()
        return gone

    def _put(self, record: MemoryRecord) -> WrittenRow:
        namespace = self._namespace(record.owner, record.layer)
        vector = normalized_or_none(record.vector)
        blob = None if vector is None else vector.tobytes()
        text = text_of(record.content)
        old = self._db.execute(
            f"SELECT {_COLUMNS}, r.vector {_FROM} WHERE r.id = ? AND r.namespace = ?", (record.id, namespace)
        ).fetchone()
        tokens = token_set(text)
        if old is not None:
            old_text = self._unindex(old)
            tokens |= token_set(old_text or "")
            blob = old["vector"] if blob is None and old_text == text else blob
        values = (
            json.dumps(content_data(record.content)),
            iso_now(record.created_at),
            iso_now(record.updated_at),
            record.session,
            record.count,
            record.standing,
            record.superseded_by,
        )
        seal = checksum([record.owner, record.layer, record.id, *values])
        if old is None:
            row = self._db.execute(
                "INSERT INTO records (namespace, id, content, created_at, updated_at, session, count, standing, "
                "superseded_by, vector, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (namespace, record.id, *values, blob, seal),
            ).lastrowid
        else:
            row = old["row"]
            self._db.execute(
                "UPDATE records SET content = ?, created_at = ?, updated_at = ?, session = ?, count = ?, standing = ?, "
                "superseded_by = ?, vector = ?, checksum = ? WHERE row = ?",
                (*values, blob, seal, row),
            )
        if record.is_active:
            self._db.executemany(
                "INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)", [(namespace, token, row) for token in token_set(text)]
            )
        kept = None if blob is None else np.frombuffer(blob, np.float32)
        return WrittenRow(record=record, vector=kept, tokens=tokens)

    def _remove(self, row: sqlite3.Row) -> DeletedRow:
        text = self._unindex(row)
        self._db.execute("DELETE FROM records WHERE row = ?", (row["row"],))
        return DeletedRow(id=row["id"], layer=_layer(row["layer"]), tokens=None if text is None else token_set(text))

    def _unindex(self, row: sqlite3.Row) -> str | None:
        """Take a row's tokens out; return its text, None if it is damaged."""
        record = self._record(row)
        if record is None:
            # Its tokens are those of another text: found by the row's number, which takes longer.
            self._db.execute("DELETE FROM tokens WHERE namespace = ? AND row = ?", (row["namespace"], row["row"]))
            return None
        text = text_of(record.content)
        self._db.executemany(
            "DELETE FROM tokens WHERE namespace = ? AND token = ? AND row = ?",
            [(row["namespace"], token, row["row"]) for token in token_set(text)],
        )
        return text

    def _whole(self, rows: Iterable[sqlite3.Row]) -> list[MemoryRecord]:
        return [record for row in rows if (record := self._record(row)) is not None]

    def _record(self, row: sqlite3.Row) -> MemoryRecord | None:
        """Return a row's record; None, and a line in the log, if it was changed outside memstory."""
        try:
            return _record(row)
        except (ValueError, TypeError) as error:
            advice = "Restore a backup, or delete it by its id"
            self._db.leave_out(f"record {row['id']}", error, advice, (row["owner"], row["id"]))
            return None

    def _check_in(self) -> None:
        """Give the rows of an earlier schema their checksums."""
        rows = self._db.execute(f"SELECT {_COLUMNS} {_FROM} WHERE r.checksum IS NULL").fetchall()
        if rows:
            seals = [(_checksum(row, row["content"].decode("utf-8", "replace")), row["row"]) for row in rows]
            with self._db.transaction():
                self._db.executemany("UPDATE records SET checksum = ? WHERE row = ?", seals)

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
    content = row["content"].decode("utf-8", "replace")
    if row["checksum"] not in (None, _checksum(row, content)):
        raise ValueError("its checksum does not fit")
    return MemoryRecord(
        id=row["id"],
        owner=row["owner"],
        content=content_of(layer, json.loads(content)),
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        session=row["session"],
        count=row["count"],
        standing=Standing(row["standing"]),
        superseded_by=row["superseded_by"],
    )


def _checksum(row: sqlite3.Row, content: str) -> str:
    names = ("created_at", "updated_at", "session", "count", "standing", "superseded_by")
    return checksum([row["owner"], row["layer"], row["id"], content, *(row[name] for name in names)])


def _layer(name: str) -> Layer | None:
    return Layer(name) if name in set(Layer) else None


def _moment(created_at: str) -> int | None:
    """Return the microseconds of a stored moment; None of a damaged one."""
    try:
        return microseconds(datetime.fromisoformat(created_at))
    except (ValueError, TypeError):
        return None


def _vector_row(identifier: str, stored: bytes, created_at: str) -> tuple[str, NDArray[np.float32], int] | None:
    """Return what is needed to search by vector; None if it is damaged: what was written has length 1."""
    moment, vector = _moment(created_at), unit_vector(stored)
    return None if moment is None or vector is None or not _is_text(identifier) else (identifier, vector, moment)


def _is_text(identifier: object) -> bool:
    return isinstance(identifier, str)
