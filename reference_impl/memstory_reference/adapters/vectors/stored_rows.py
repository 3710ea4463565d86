"""Vector rows in SQLite, one owner's at a time; blocking.

What is deleted is overwritten.
A row that cannot be read comes without text and metadata: it is no memory, is in nobody's way, and can be deleted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.vector_rows import equality_test
from memstory_reference.ports import Primitive, Record
from memstory_reference.storage.database_store import Database, batches_of_values
from memstory_reference.storage.reindexing import EmbeddedTable, text_in

SCHEMA = """
CREATE TABLE IF NOT EXISTS owners (
    number INTEGER PRIMARY KEY, collection TEXT NOT NULL, owner TEXT NOT NULL, UNIQUE (collection, owner)
);
CREATE TABLE IF NOT EXISTS rows (
    owner INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL, vector BLOB NOT NULL,
    checksum INTEGER, UNIQUE (owner, id)
);
"""
EMBEDDED = EmbeddedTable(
    select="SELECT rowid, text FROM rows ORDER BY rowid",
    update="UPDATE rows SET vector = ? WHERE rowid = ?",
    text=text_in("text"),
)
_PUT = (
    "INSERT INTO rows (owner, id, text, metadata, vector, checksum) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (owner, id) DO UPDATE SET text = excluded.text, metadata = excluded.metadata, "
    "vector = excluded.vector, checksum = excluded.checksum"
)


class StoredRows:
    """The rows of one owner in one collection; the owner is noted with the first row."""

    def __init__(self, database: Database, collection: str, owner: str) -> None:
        self.key = (collection, owner)
        self._db = database
        self._count: int | None = None
        self._known = 0

    @property
    def has_owner(self) -> bool:
        """Whether the owner ever wrote."""
        return bool(self._number())

    def put(self, records: Iterable[Record], about: Mapping[str, str]) -> None:
        """Write rows that have vectors, all or none; the first of a store bring with them what it is `about`."""
        self._count = None
        try:
            with self._db.transaction():
                self._db.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", list(about.items()))
                self._db.execute("INSERT OR IGNORE INTO owners (collection, owner) VALUES (?, ?)", self.key)
                self._db.executemany(_PUT, [_values(self._number(), record) for record in records])
        except BaseException:
            self._known = 0  # the number may have been taken back, and be somebody else's next
            raise

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows; return the ids that existed."""
        self._count, number = None, self._number()
        with self._db.transaction():
            gone = self._known_ids(ids)  # not read: one that is damaged can be forgotten
            self._db.executemany("DELETE FROM rows WHERE owner = ? AND id = ?", [(number, one) for one in gone])
        if gone:
            self._db.forget_log()
        return gone

    def read(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, in the order of `ids`, with their vectors."""
        found: dict[str, Record] = {}
        for marks, part in batches_of_values(ids):
            sql = f"SELECT id, text, metadata, vector, checksum FROM rows WHERE owner = ? AND id IN ({marks})"  # noqa: S608
            found |= {row[0]: self._record(*row) for row in self._db.rows(sql, (self._number(), *part))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def every(self) -> Iterator[Record]:
        """Return all rows with their vectors."""
        sql = "SELECT id, text, metadata, vector, checksum FROM rows WHERE owner = ?"
        return (self._record(*row) for part in self._db.batches(sql, (self._number(),)) for row in part)

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids of the rows that match, sorted."""
        tests = [(key, equality_test(value)) for key, value in where.items()]
        if not tests:
            return [row[0] for row in self._db.execute("SELECT id FROM rows WHERE owner = ? ORDER BY id", self._args())]
        # SQLite leaves out, without decoding them, rows that do not have the texts anywhere.
        texts = [json.dumps(value) for value in where.values() if isinstance(value, str)]
        holding = " AND instr(metadata, ?)" * len(texts)
        sql = f"SELECT id, text, metadata, x'', checksum FROM rows WHERE owner = ?{holding} ORDER BY id"  # noqa: S608
        rows = self._db.rows(sql, (*self._args(), *texts))
        read = ((row[0], self._record(*row).metadata) for row in rows)
        return [one for one, metadata in read if all(is_same(metadata.get(key)) for key, is_same in tests)]

    def count(self) -> int:
        """Count all rows."""
        if self._count is None:
            (self._count,) = self._db.execute("SELECT count(*) FROM rows WHERE owner = ?", self._args()).fetchone()
        return int(self._count)

    def _known_ids(self, ids: Sequence[str]) -> list[str]:
        found: set[str] = set()
        for marks, part in batches_of_values(ids):
            sql = f"SELECT id FROM rows WHERE owner = ? AND id IN ({marks})"  # noqa: S608
            found |= {row[0] for row in self._db.execute(sql, (self._number(), *part))}
        return [one for one in dict.fromkeys(ids) if one in found]

    def _record(self, identifier: str, text: str, metadata: str, blob: bytes, seal: int | None = None) -> Record:
        try:
            if seal not in (None, _checksum(self._number(), identifier, text, metadata)):
                raise ValueError("its checksum does not fit")  # noqa: TRY301  (one way for all that is damaged)
            return _record(identifier, text, metadata, blob)
        except (TypeError, ValueError) as problem:
            advice = "Restore a backup, or forget its owner"
            self._db.leave_out(f"the row {identifier!r}", problem, advice, (self.key, identifier))
            return Record(id=identifier, text="", vector=np.empty(0, np.float32))

    def _args(self) -> tuple[int]:
        return (self._number(),)

    def _number(self) -> int:
        """Return the owner's number; 0, which nobody has, before the first row."""
        if not self._known:
            found = self._db.execute(
                "SELECT number FROM owners WHERE collection = ? AND owner = ?", self.key
            ).fetchone()
            self._known = 0 if found is None else found[0]
        return self._known


def model_and_dimension(database: Database) -> tuple[str, int] | None:
    """Return the model of the vectors and how many numbers each has; None before the first row.

    Raises:
        UnavailableError: the file has rows and does not say it.
    """
    about = dict(map(tuple, database.execute("SELECT name, value FROM about")))
    if not about and database.execute("SELECT 1 FROM rows LIMIT 1").fetchone() is None:
        return None
    model, dimension = about.get("model"), _count(about.get("dimension"))
    if not isinstance(model, str) or dimension is None:
        raise UnavailableError(
            f"{database.file} is damaged: it does not say which model its vectors are of; restore a backup, "
            "or embed its texts again (memory reindex)"
        )
    return model, dimension


def owners_of(database: Database, collection: str) -> list[str]:
    """Return the owners that ever wrote to a collection."""
    rows = database.execute("SELECT owner FROM owners WHERE collection = ? ORDER BY owner", (collection,))
    return sorted(row[0] for row in rows)


def seal_rows(database: Database) -> None:
    """Give the rows of a file that was made without them their checksums, all or none."""
    if any(row["name"] == "checksum" for row in database.execute("PRAGMA table_info(rows)")):
        return
    with database.transaction():
        database.execute("ALTER TABLE rows ADD COLUMN checksum INTEGER")
        rows = database.rows("SELECT owner, id, text, metadata, rowid FROM rows")
        sound = [(row[:4], row[4]) for row in map(tuple, rows) if all(isinstance(one, str) for one in row[1:4])]
        database.executemany(
            "UPDATE rows SET checksum = ? WHERE rowid = ?", [(_checksum(*row), number) for row, number in sound]
        )


def _values(owner: int, record: Record) -> tuple[object, ...]:
    metadata = json.dumps(dict(record.metadata))
    vector = np.asarray(record.vector, np.float32).tobytes()
    return owner, record.id, record.text, metadata, vector, _checksum(owner, record.id, record.text, metadata)


def _checksum(owner: int, identifier: str, text: str, metadata: str) -> int:
    # Not that of `checksum`: all rows of an owner are read at once, and it takes four times as long.
    return crc32("\0".join((str(owner), identifier, text, metadata)).encode())


def is_sound(file: Path) -> bool:
    """Say whether a file of rows, if there is one, can be read whole; what was altered within a vector is not seen."""
    if not file.is_file():
        return True
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
            has_rows = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone()
            rows = database.execute("SELECT id, text, metadata, vector FROM rows") if has_rows else ()
            sizes = {len(np.asarray(_record(*row).vector)) for row in rows}
            about = dict(database.execute("SELECT name, value FROM about")) if sizes else {}
    except (sqlite3.Error, TypeError, ValueError):
        return False
    return verdict == "ok" and (not sizes or ("model" in about and sizes == {_count(about.get("dimension"))}))


def _count(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _record(identifier: str, text: str, metadata: str, blob: bytes) -> Record:
    """Return a row; TypeError or ValueError of one that cannot be read."""
    if not isinstance(identifier, str) or not isinstance(text, str):
        raise TypeError("its id or its text is none")
    vector: NDArray[np.float32] = np.frombuffer(blob, np.float32)
    return Record(id=identifier, text=text, metadata=_mapping(metadata), vector=vector)


def _mapping(metadata: str) -> dict[str, Primitive]:
    found = json.loads(metadata)
    if not isinstance(found, dict):
        raise ValueError(f"expected metadata, found {metadata!r:.40}")  # noqa: TRY004  (the content, not the argument)
    return found
