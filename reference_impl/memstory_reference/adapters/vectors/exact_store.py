"""The exact vector store: rows in SQLite or Postgres are the truth, vectors of active owners are in memory as a matrix.

What is deleted is overwritten, where that is in our hands. Each write draws a new version of its owner's rows, by which
another process reads them again; a process's own writes are followed. A row that cannot be read comes without text and
metadata: it is no memory, is in nobody's way, and can be deleted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.adapters.vectors.vector_rows import (
    CheckedIndex,
    check_model,
    checked_collection,
    checked_name,
    meets,
)
from memstory_reference.errors import StoreConflictError
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.held_rows import HeldRows
from memstory_reference.storage.postgres.tables import LITTLE_ENDIAN_VECTOR, postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in
from memstory_reference.storage.sql_database import IN_MEMORY, Database, SqlDatabase, batches_of_values
from memstory_reference.storage.vector_matrix import VectorMatrix

logger = logging.getLogger(__name__)

FILE = "vectors.sqlite3"
SCHEMA = """
CREATE TABLE IF NOT EXISTS owners (
    number INTEGER PRIMARY KEY, collection TEXT NOT NULL, owner TEXT NOT NULL, version TEXT, UNIQUE (collection, owner)
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
EMBEDDED_FILE = EmbeddedFile(name=FILE, schema=SCHEMA, tables=[EMBEDDED])
INDEXES = ("chroma", "chroma.stale")
"""Folders in which an earlier version kept Chroma's index of the same rows: what is forgotten must not stay there."""

KEPT_CONDITIONS = 64
"""Conditions of one owner whose rows are known without looking at them again."""

# Vectors are read packed: never out of line.
_TABLES = f"{postgres_tables(SCHEMA, 'owner INTEGER')} ALTER TABLE rows ALTER vector SET STORAGE MAIN;"


def _text_of(column: str) -> str:
    """Return the SQL of Postgres for a text that stood as bytes: byte by byte, for NUL is written in two now."""
    signs = f"regexp_replace(encode({column}, 'hex'), '(..)', '\\1 ', 'g')"
    written = f"replace(replace(replace({signs}, '01 ', '0131'), '00 ', '0130'), ' ', '')"
    return f"convert_from(decode({written}, 'hex'), 'UTF8')"


# Of metadata, schema 1 had a list of key and value in JSON for each, whose NULs the functions of Postgres refuse.
_PAIR = r"""regexp_replace(pair, '^\[("([^"\\]|\\.)*"), (.*)\]$', '\1: \3')"""
MIGRATIONS: Mapping[int, str] = {
    0: _TABLES,
    1: f"""
CREATE TEMPORARY TABLE was_owners ON COMMIT DROP AS SELECT number, collection, name FROM owners;
CREATE TEMPORARY TABLE was_rows ON COMMIT DROP AS SELECT owner, id, text, metadata, vector FROM rows;
DROP TABLE owners, rows;
{_TABLES}
SELECT setval('row_numbers', 1 + greatest((SELECT max(number) FROM was_owners), 0));
INSERT INTO owners SELECT number, collection, {_text_of("name")}, NULL FROM was_owners;
INSERT INTO rows SELECT owner, {_text_of("id")}, {_text_of("text")},
    (SELECT '{{' || coalesce(string_agg({_PAIR}, ', ' ORDER BY place), '') || '}}'
        FROM unnest(metadata) WITH ORDINALITY AS pairs (pair, place)),
    {LITTLE_ENDIAN_VECTOR.format(vector="vector")}, NULL FROM was_rows ORDER BY owner;
""",  # noqa: S608  (constants)
}
"""What makes a schema of Postgres, out of nothing or of an earlier one."""

_OWNER = (
    "INSERT INTO owners (collection, owner, version) VALUES (?, ?, ?) "
    "ON CONFLICT (collection, owner) DO UPDATE SET version = excluded.version RETURNING number"
)


class _RowsInMemory:
    """One owner's rows in memory."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._matrix = VectorMatrix()
        self._matching: dict[frozenset[tuple[str, type, Primitive]], NDArray[np.intp]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def change(self, gone: Sequence[str], records: Sequence[Record]) -> None:
        """Take rows out, and put others in."""
        self._matching.clear()
        for one in gone:
            self._matrix.discard(one)
            self._records.pop(one, None)
        for record in records:
            self._matrix.put(record.id, np.asarray(record.vector, np.float32))
            self._records[record.id] = replace(record, vector=None)

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        found = self._matrix.nearest(vector, k, among=self._places(where) if where else None)
        return [Match(record=self._records[one], similarity=similarity) for one, similarity in found]

    def _places(self, where: Mapping[str, Primitive]) -> NDArray[np.intp]:
        """Return where the rows are that match: found once, for systems ask with the same few conditions."""
        key = frozenset((name, type(value), value) for name, value in where.items())
        if key not in self._matching:
            if len(self._matching) == KEPT_CONDITIONS:
                self._matching.clear()
            is_met = meets(where)
            self._matching[key] = self._matrix.places(one for one, row in self._records.items() if is_met(row.metadata))
        return self._matching[key]


class ExactRows:
    """One owner's rows in one collection, by one database; blocking. The owner is noted with the first row."""

    def __init__(self, store: ExactStore, database: SqlDatabase, key: tuple[str, str]) -> None:
        self.lane = database.lane
        self._store = store
        self._db = database
        self._key = key

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has; None before the first row, which another process may write."""
        if self._store.dimension is not None:
            return self._store.dimension
        found = _dimension_in(self._db)
        # What a task has noted while it is alone may be rolled back: until then it is nobody else's.
        if not self._db.is_in_transaction:
            self._store.dimension = found
        return found

    def put(self, records: Sequence[Record]) -> None:
        """Write rows that have vectors, all or none; the first of a store bring with them what it is about."""
        self._write([record.id for record in records], records)

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows everywhere; return the ids that existed."""
        gone = self._write(ids, [])
        if gone:
            self._db.forget_log()
        return gone

    def read(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, in the order of `ids`, with their vectors."""
        number, _ = self._state()
        found: dict[str, Record] = {}
        for marks, part in batches_of_values(ids):
            sql = f"SELECT id, text, metadata, vector, checksum FROM rows WHERE owner = ? AND id IN ({marks})"  # noqa: S608
            found |= {row[0]: self._record(number, row) for row in self._db.rows(sql, (number, *part))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        # The version first: what is written in between is then read once more.
        number, version = self._state()
        if not number:
            return []
        with self._store.held.at(self._key, (number, version)) as held:
            if not held:
                held.change([], self._sound(number))
            return held.nearest(vector, k, where)

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids of the rows that match, sorted."""
        number, _ = self._state()
        if not where:
            return [row[0] for row in self._db.execute("SELECT id FROM rows WHERE owner = ? ORDER BY id", (number,))]
        # Rows that do not have the texts anywhere are left out without decoding them; Postgres has some as they are.
        texts = [{json.dumps(one), json.dumps(one, ensure_ascii=False)} for one in where.values() if type(one) is str]
        has_text = "replace(metadata, ?, '') <> metadata"
        holding = "".join(f" AND ({' OR '.join([has_text] * len(forms))})" for forms in texts)
        sql = f"SELECT id, text, metadata, checksum FROM rows WHERE owner = ?{holding} ORDER BY id"  # noqa: S608
        rows = self._db.rows(sql, (number, *chain.from_iterable(texts)))
        read = (self._record(number, (*texts, b"", seal)) for *texts, seal in rows)
        is_met = meets(where)
        return [row.id for row in read if is_met(row.metadata)]

    def count(self) -> int:
        """Count all rows."""
        number, _ = self._state()
        (count,) = self._db.execute("SELECT count(*) FROM rows WHERE owner = ?", (number,)).fetchone()
        return int(count)

    def _write(self, ids: Sequence[str], records: Sequence[Record]) -> list[str]:
        """Put records in the place of rows; return the ids of those that there were."""
        version = secrets.token_hex(8)
        with self._db.transaction(json.dumps(self._key)):
            before = number, _ = self._state()
            gone = self._delete(number, ids)
            if not gone and not records:
                return []
            if records:
                self._store.note(self._db, len(np.asarray(records[0].vector)))
            (number,) = self._db.execute(_OWNER, (*self._key, version)).fetchone()
            columns = "owner, id, text, metadata, vector, checksum"
            self._db.insert("rows", columns, [_values(number, record) for record in records])
        self._store.held.follow(self._key, before, (number, version), lambda held: held.change(gone, records))
        return gone

    def _state(self) -> tuple[int, object]:
        """Return the owner's number and version; 0, which nobody has, before the first row."""
        sql = "SELECT number, version FROM owners WHERE collection = ? AND owner = ?"
        number, version = self._db.execute(sql, self._key).fetchone() or (0, None)
        return number, version

    def _sound(self, number: int) -> list[Record]:
        sql = "SELECT id, text, metadata, vector, checksum FROM rows WHERE owner = ?"
        every = (self._record(number, row) for part in self._db.batches(sql, (number,)) for row in part)
        return [one for one in every if np.asarray(one.vector).size == self.dimension]

    def _delete(self, number: int, ids: Sequence[str]) -> list[str]:
        found = set[str]()
        for marks, part in batches_of_values(ids):
            # Not read: one that is damaged can be forgotten.
            sql = f"DELETE FROM rows WHERE owner = ? AND id IN ({marks}) RETURNING id"  # noqa: S608
            found |= {row[0] for row in self._db.execute(sql, (number, *part))}
        return [one for one in dict.fromkeys(ids) if one in found]

    def _record(self, number: int, row: Iterable[Any]) -> Record:
        identifier, text, metadata, blob, seal = row
        try:
            if seal not in (None, _checksum(number, identifier, text, metadata)):
                raise ValueError("its checksum does not fit")  # noqa: TRY301  (one way for all that is damaged)
            return _record(identifier, text, metadata, blob)
        except (TypeError, ValueError) as problem:
            advice = "Restore a backup, or forget its owner"
            self._db.leave_out(f"the row {identifier!r}", problem, advice, (self._key, identifier))
            return Record(id=identifier, text="", vector=np.empty(0, np.float32))


class ExactStore:
    """A `VectorStore` in a database, or in memory alone; `release` is called at the end.

    One process owns a file. In Postgres, what a task does while it is alone is whole or nothing.
    """

    def __init__(
        self,
        database: SqlDatabase | None = None,
        *,
        model: str,
        dimension: int | None = None,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        """Compare the database with this run; blocking."""
        self._db = database or Database(IN_MEMORY, schema=SCHEMA)
        self.is_shared = self._db.is_shared
        self._model = model
        self.dimension = dimension
        self._release = release
        self.held = HeldRows[tuple[str, str], _RowsInMemory](_RowsInMemory)
        self._admit()

    @asynccontextmanager
    async def alone(self, owner: str) -> AsyncIterator[None]:
        """Hold off who else, in any process, wants to be alone with this owner."""
        # A file has one connection, by which all others write meanwhile.
        async with self._db.hold(owner) as own, _transaction(own) if self.is_shared else nullcontext():
            yield

    async def index(self, collection: str, owner: str) -> CheckedIndex:
        """Return the index of `owner`."""
        key = (checked_collection(collection), checked_name("owner", owner))
        self._db.lane.check_open()
        return CheckedIndex(partial(self._rows, key))

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        sql = "SELECT owner FROM owners WHERE collection = ?"
        return await self._db.run(lambda database: sorted(row[0] for row in database.rows(sql, (collection,))))

    async def close(self) -> None:
        """Finish what is being written and let go of the database; a second call does nothing."""
        await asyncio.shield(self._close())

    def note(self, database: SqlDatabase, dimension: int) -> None:
        """Note with the first row what the vectors are; another process may have written one meanwhile; blocking."""
        held = _dimension_in(database)
        if held is None:
            about = [("model", self._model), ("dimension", str(dimension))]
            database.executemany("INSERT INTO about VALUES (?, ?) ON CONFLICT DO NOTHING", about)
            held = _dimension_in(database)
        if held != dimension:
            raise StoreConflictError(f"vector has {dimension} numbers, the store holds vectors of {held}")

    @asynccontextmanager
    async def _rows(self, key: tuple[str, str]) -> AsyncIterator[ExactRows]:
        async with self._db.lend() as database:
            yield ExactRows(self, database, key)

    def _admit(self) -> None:
        """Compare the database with this run; UnavailableError where it has rows and does not say of which model."""
        about = dict(map(tuple, self._db.execute("SELECT name, value FROM about")))
        if "dimension" not in about and self._db.execute("SELECT 1 FROM rows LIMIT 1").fetchone() is None:
            return
        model, dimension = about.get("model"), _count(about.get("dimension"))
        if not isinstance(model, str) or dimension is None:
            raise UnavailableError(
                f"{self._db.place} is damaged: it does not say which model its vectors are of; restore a backup, "
                "or embed its texts again (memory reindex)"
            )
        check_model(self._db.place, (model, dimension), (self._model, self.dimension))
        self.dimension = dimension

    async def _close(self) -> None:
        try:
            await self._db.aclose()
        finally:
            self._release()


def open_exact_folder(folder: Path, *, model: str, dimension: int | None = None) -> ExactStore:
    """Open the store in `folder`, which this store alone owns until it is closed.

    Raises:
        StoreConflictError: another store has the folder, or made it with another model or dimension.
        SetupError: the folder cannot be written.
    """
    with FolderLock(folder).opening() as release:
        store = open_exact_file(folder / FILE, model=model, dimension=dimension, release=release)
        for index in [folder / name for name in INDEXES if (folder / name).is_dir()]:
            logger.warning("%s is deleted: an index of the rows that are in %s", index, FILE)
            shutil.rmtree(index)
    return store


def open_exact_file(
    file: Path, *, model: str, dimension: int | None = None, release: Callable[[], object] = lambda: None
) -> ExactStore:
    """Open the store in `file`, which nobody else may have open."""
    database = Database(file, schema=SCHEMA)
    try:
        _complete(database)
        return ExactStore(database, model=model, dimension=dimension, release=release)
    except BaseException:
        database.close()
        raise


def _complete(database: Database) -> None:
    """Give a file of an earlier version what it lacks, all or none: versions, and checksums of its rows."""
    tables = ("owners", "rows")
    columns = {row["name"] for table in tables for row in database.execute(f"PRAGMA table_info({table})")}
    if {"version", "checksum"} <= columns:
        return
    with database.transaction():
        if "version" not in columns:
            database.execute("ALTER TABLE owners ADD COLUMN version TEXT")
        if "checksum" not in columns:
            database.execute("ALTER TABLE rows ADD COLUMN checksum INTEGER")
            rows = database.rows("SELECT owner, id, text, metadata, rowid FROM rows")
            sound = [(row[:4], row[4]) for row in map(tuple, rows) if all(isinstance(one, str) for one in row[1:4])]
            database.executemany(
                "UPDATE rows SET checksum = ? WHERE rowid = ?", [(_checksum(*row), number) for row, number in sound]
            )


@asynccontextmanager
async def _transaction(database: SqlDatabase) -> AsyncIterator[None]:
    """Be in one transaction through several calls of the lane."""
    whole = database.transaction()
    beginning = asyncio.ensure_future(database.lane.run(whole.__enter__))
    try:
        await asyncio.shield(beginning)  # it begins even if the task is cancelled, and is then to be ended
        yield
    except BaseException as problem:
        await asyncio.shield(database.lane.run(whole.__exit__, type(problem), problem, problem.__traceback__))
        raise
    await asyncio.shield(database.lane.run(whole.__exit__, None, None, None))


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


def _dimension_in(database: SqlDatabase) -> int | None:
    row = database.execute("SELECT value FROM about WHERE name = 'dimension'").fetchone()
    return _count(row[0]) if row else None


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
