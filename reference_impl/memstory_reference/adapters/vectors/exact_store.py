"""The exact vector store: rows in SQLite are the truth, and the vectors of active owners are in memory as a matrix."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.vectors.checked_index import CheckedIndex
from memstory_reference.adapters.vectors.stored_rows import (
    EMBEDDED,
    SCHEMA,
    StoredRows,
    model_and_dimension,
    owners_of,
    seal_rows,
)
from memstory_reference.adapters.vectors.vector_rows import check_model, checked_collection, checked_name, equality_test
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.database_store import IN_MEMORY, Database
from memstory_reference.storage.named_locks import NamedLocks
from memstory_reference.storage.reindexing import EmbeddedFile
from memstory_reference.storage.vector_matrix import HeldRows, VectorMatrix

logger = logging.getLogger(__name__)

FILE = "vectors.sqlite3"
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
    """One owner's rows: in SQLite, and in memory while they are searched."""

    def __init__(self, store: ExactStore, stored: StoredRows) -> None:
        self._store = store
        self._stored = stored
        self.read, self.select, self.count = stored.read, stored.select, stored.count

    @property
    def has_owner(self) -> bool:
        """Whether the owner ever wrote."""
        return self._stored.has_owner

    def put(self, records: Sequence[Record]) -> None:
        """Write rows to SQLite, and to memory if they are there."""
        self._stored.put(records, self._store.about(len(np.asarray(records[0].vector))))
        if (held := self._store.held.get(self._stored.key)) is not None:
            held.put(records)

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows everywhere."""
        gone = self._stored.drop(ids)
        if (held := self._store.held.get(self._stored.key)) is not None:
            held.drop(gone)
        return gone

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        return self._store.in_memory(self._stored).nearest(vector, k, where)


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
        return await self._lane.run(owners_of, self._db, collection)

    async def close(self) -> None:
        """Finish what is being written and let go of the file; a second call does nothing."""
        await self._lane.close(self._close)

    def about(self, dimension: int) -> Mapping[str, str]:
        """Return what the first row says of the store: what its vectors are."""
        self.dimension = dimension
        return {"model": self._model, "dimension": str(dimension)}

    def in_memory(self, rows: StoredRows) -> _RowsInMemory:
        """Return the rows in memory; those of others go, the longest unused first, until they fit."""
        if not rows.count():
            return _RowsInMemory([])
        held = self.held.get(rows.key)
        if held is None:
            every = [one for one in rows.every() if np.asarray(one.vector).size == self.dimension]
            held = self.held.keep(rows.key, _RowsInMemory(every))
        return held

    def _index(self, key: tuple[str, str]) -> CheckedIndex:
        rows = self._used.setdefault(key, ExactRows(self, StoredRows(self._db, *key)))
        if rows.has_owner:
            # What is known of an owner's rows is kept between two calls; of a name that only was asked for, nothing.
            self._rows[key] = rows
        return CheckedIndex(self._lane, rows, lambda: self.dimension)

    def _admit(self) -> None:
        made = model_and_dimension(self._db)
        if made is not None:
            check_model(str(self._place), made, (self._model, self.dimension))
            self.dimension = made[1]

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
    lock = FolderLock(folder)
    lock.acquire()
    try:
        store = ExactStore(folder / FILE, model=model, dimension=dimension, release=lock.release)
        for index in [folder / name for name in INDEXES if (folder / name).is_dir()]:
            logger.warning("%s is deleted: an index of the rows that are in %s", index, FILE)
            shutil.rmtree(index)
    except BaseException:
        lock.release()
        raise
    return store
