"""The exact vector store: rows in SQLite are the truth, and the vectors of active owners are in memory as a matrix.

What is deleted is overwritten.
A row that cannot be read comes without text and metadata: it is no memory, is in nobody's way, and can be deleted.
"""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.vectors.checked_index import CheckedIndex
from memstory_reference.adapters.vectors.vector_rows import check_model, checked_collection, checked_name, equality_test
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.database_store import IN_MEMORY, Database, batches_of_values
from memstory_reference.storage.lane import NamedLocks
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in
from memstory_reference.storage.vector_matrix import HeldRows, VectorMatrix

logger = logging.getLogger(__name__)

FILE = "vectors.sqlite3"
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

EMBEDDED_FILE = EmbeddedFile(name=FILE, schema=SCHEMA, tables=[EMBEDDED])
INDEXES = ("chroma", "chroma.stale")
"""Folders in which an earlier version kept Chroma's index of the same rows: what is forgotten must not stay there."""

KEPT_CONDITIONS = 64
"""Conditions of one owner whose rows are known without looking at them again."""


class _RowsInMemory:
    """One owner's rows in memory."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records: dict[str, Record] = {}
        self._matrix = VectorMatrix()
        self._matching: dict[frozenset[tuple[str, type, Primitive]], NDArray[np.intp]] = {}
        self.put(records)

    def __len__(self) -> int:
        return len(self._records)

    def put(self, records: Sequence[Record]) -> None:
        self._matching.clear()
        for record in records:
            self._matrix.put(record.id, np.asarray(record.vector, np.float32))
            self._records[record.id] = replace(record, vector=None)

    def drop(self, ids: Sequence[str]) -> None:
        self._matching.clear()
        for one in ids:
            self._matrix.discard(one)
            self._records.pop(one, None)

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        found = self._matrix.nearest(vector, k, among=self._places(where) if where else None)
        return [Match(record=self._records[one], similarity=similarity) for one, similarity in found]

    def _places(self, where: Mapping[str, Primitive]) -> NDArray[np.intp]:
        """Return where the rows are that match: found once, for systems ask with the same few conditions."""
        key = frozenset((name, type(value), value) for name, value in where.items())
        if key not in self._matching:
            if len(self._matching) == KEPT_CONDITIONS:
                self._matching.clear()
            tests = [(name, equality_test(value)) for name, value in where.items()]
            rows = self._records.items()
            matching = (one for one, row in rows if all(is_same(row.metadata.get(name)) for name, is_same in tests))
            self._matching[key] = self._matrix.places(matching)
        return self._matching[key]


class ExactRows:
    """One owner's rows in one collection: in SQLite, and in memory while they are searched; blocking.

    The owner is noted with the first row.
    """

    def __init__(self, store: ExactStore, database: Database, key: tuple[str, str]) -> None:
        self.key = key
        self._store = store
        self._db = database
        self._count: int | None = None
        self._known = 0

    @property
    def has_owner(self) -> bool:
        """Whether the owner ever wrote."""
        return bool(self._number())

    def put(self, records: Sequence[Record]) -> None:
        """Write rows that have vectors, all or none; the first of a store bring with them what it is about."""
        self._count = None
        about = self._store.about(len(np.asarray(records[0].vector)))
        try:
            with self._db.transaction():
                self._db.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", list(about.items()))
                self._db.execute("INSERT OR IGNORE INTO owners (collection, owner) VALUES (?, ?)", self.key)
                self._db.executemany(_PUT, [_values(self._number(), record) for record in records])
        except BaseException:
            self._known = 0  # the number may have been taken back, and be somebody else's next
            raise
        if (held := self._store.held.get(self.key)) is not None:
            held.put(records)

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows everywhere; return the ids that existed."""
        self._count, number = None, self._number()
        with self._db.transaction():
            gone = self._known_ids(ids)  # not read: one that is damaged can be forgotten
            self._db.executemany("DELETE FROM rows WHERE owner = ? AND id = ?", [(number, one) for one in gone])
        if gone:
            self._db.forget_log()
        if (held := self._store.held.get(self.key)) is not None:
            held.drop(gone)
        return gone

    def read(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, in the order of `ids`, with their vectors."""
        found: dict[str, Record] = {}
        for marks, part in batches_of_values(ids):
            sql = f"SELECT id, text, metadata, vector, checksum FROM rows WHERE owner = ? AND id IN ({marks})"  # noqa: S608
            found |= {row[0]: self._record(*row) for row in self._db.rows(sql, (self._number(), *part))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        return self._in_memory().nearest(vector, k, where) if self.count() else []

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids of the rows that match, sorted."""
        tests = [(key, equality_test(value)) for key, value in where.items()]
        if not tests:
            return [
                row[0] for row in self._db.execute("SELECT id FROM rows WHERE owner = ? ORDER BY id", (self._number(),))
            ]
        # SQLite leaves out, without decoding them, rows that do not have the texts anywhere.
        texts = [json.dumps(value) for value in where.values() if isinstance(value, str)]
        holding = " AND instr(metadata, ?)" * len(texts)
        sql = f"SELECT id, text, metadata, x'', checksum FROM rows WHERE owner = ?{holding} ORDER BY id"  # noqa: S608
        rows = self._db.rows(sql, (*(self._number(),), *texts))
        read = ((row[0], self._record(*row).metadata) for row in rows)
        return [one for one, metadata in read if all(is_same(metadata.get(key)) for key, is_same in tests)]

    def count(self) -> int:
        """Count all rows."""
        if self._count is None:
            (self._count,) = self._db.execute("SELECT count(*) FROM rows WHERE owner = ?", (self._number(),)).fetchone()
        return int(self._count)

    def _in_memory(self) -> _RowsInMemory:
        """Return the rows in memory; those of others go, the longest unused first, until they fit."""
        held = self._store.held.get(self.key)
        if held is None:
            sql = "SELECT id, text, metadata, vector, checksum FROM rows WHERE owner = ?"
            every = (self._record(*row) for part in self._db.batches(sql, (self._number(),)) for row in part)
            sound = [one for one in every if np.asarray(one.vector).size == self._store.dimension]
            held = self._store.held.keep(self.key, _RowsInMemory(sound))
        return held

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

    def _number(self) -> int:
        """Return the owner's number; 0, which nobody has, before the first row."""
        if not self._known:
            found = self._db.execute(
                "SELECT number FROM owners WHERE collection = ? AND owner = ?", self.key
            ).fetchone()
            self._known = 0 if found is None else found[0]
        return self._known


class ExactStore:
    """A `VectorStore` in one SQLite file, or in memory alone if there is no `file`; one process owns the file.

    `release` is called at the end.
    """

    is_shared = False

    def __init__(
        self,
        file: Path | None = None,
        *,
        model: str,
        dimension: int | None = None,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        self._locks = NamedLocks()
        self._db = Database(file or IN_MEMORY, schema=SCHEMA)
        self._lane = self._db.lane
        self._model = model
        self.dimension = dimension
        self._place = file.parent if file else "memory"
        self._release = release
        self._used: WeakValueDictionary[tuple[str, str], ExactRows] = WeakValueDictionary()
        self._rows: dict[tuple[str, str], ExactRows] = {}
        self.held = HeldRows[tuple[str, str], _RowsInMemory](len)
        try:
            seal_rows(self._db)
            self._admit()
        except BaseException:
            self._db.close()
            raise

    def alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Hold off who else in this process wants to be alone with this owner."""
        return self._locks.hold(owner)

    async def index(self, collection: str, owner: str) -> CheckedIndex:
        """Return the index of `owner`."""
        key = (checked_collection(collection), checked_name("owner", owner))
        return await self._lane.run(self._index, key)

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        sql = "SELECT owner FROM owners WHERE collection = ?"
        return await self._lane.run(lambda: sorted(row[0] for row in self._db.execute(sql, (collection,))))

    async def close(self) -> None:
        """Finish what is being written and let go of the file; a second call does nothing."""
        await self._lane.close(self._close)

    def about(self, dimension: int) -> Mapping[str, str]:
        """Return what the first row says of the store: what its vectors are."""
        self.dimension = dimension
        return {"model": self._model, "dimension": str(dimension)}

    def _index(self, key: tuple[str, str]) -> CheckedIndex:
        rows = self._used.setdefault(key, ExactRows(self, self._db, key))
        if rows.has_owner:
            # What is known of an owner's rows is kept between two calls; of a name that only was asked for, nothing.
            self._rows[key] = rows
        return CheckedIndex(self._lane, rows, lambda: self.dimension)

    def _admit(self) -> None:
        """Compare the file with this run; UnavailableError where it has rows and does not say of which model."""
        about = dict(map(tuple, self._db.execute("SELECT name, value FROM about")))
        if not about and self._db.execute("SELECT 1 FROM rows LIMIT 1").fetchone() is None:
            return
        model, dimension = about.get("model"), _count(about.get("dimension"))
        if not isinstance(model, str) or dimension is None:
            raise UnavailableError(
                f"{self._db.file} is damaged: it does not say which model its vectors are of; restore a backup, "
                "or embed its texts again (memory reindex)"
            )
        check_model(str(self._place), (model, dimension), (self._model, self.dimension))
        self.dimension = dimension

    def _close(self) -> None:
        try:
            self._db.close()
        finally:
            self._release()


def open_exact_folder(folder: Path, *, model: str, dimension: int | None = None) -> ExactStore:
    """Open the store in `folder`, which this store alone owns until it is closed.

    Raises:
        StoreConflictError: another store has the folder, or made it with another model or dimension.
        SetupError: the folder cannot be written.
    """
    with FolderLock(folder).opening() as release:
        store = ExactStore(folder / FILE, model=model, dimension=dimension, release=release)
        for index in [folder / name for name in INDEXES if (folder / name).is_dir()]:
            logger.warning("%s is deleted: an index of the rows that are in %s", index, FILE)
            shutil.rmtree(index)
    return store


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
