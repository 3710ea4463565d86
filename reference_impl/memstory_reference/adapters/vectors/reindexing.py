"""A store's texts embedded again, by another model: all of them or none, whenever it is cut off."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.vectors.exact_store import FILE
from memstory_reference.adapters.vectors.stored_rows import SCHEMA
from memstory_reference.errors import InputError
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.storage.database_store import Database

AT_ONCE = 256


async def reindex(folder: Path, embedder: Embedder) -> int:
    """Embed every text of the store in `folder` by `embedder`, which owns it from then on; return how many.

    Raises:
        InputError: there is no store.
        StoreConflictError: another process has the folder.
    """
    file, part = folder / FILE, folder / f"{FILE}.part"
    if not file.is_file():
        raise InputError(f"{folder}: no store is there")
    lock = FolderLock(folder)
    lock.acquire()
    try:
        _copied(file, part)
        database = Database(part, schema=SCHEMA)
        try:
            number = await _embedded(database, embedder)
            database.forget_log()
        finally:
            database.close()
        for log in ("-wal", "-shm"):
            file.with_name(file.name + log).unlink(missing_ok=True)
        part.replace(file)
        return number
    finally:
        lock.release()


async def _embedded(database: Database, embedder: Embedder) -> int:
    rows = database.execute("SELECT rowid AS number, text FROM rows ORDER BY rowid").fetchall()
    dimension = embedder.dimension
    with database.transaction():
        for start in range(0, len(rows), AT_ONCE):
            chosen: Sequence[Any] = rows[start : start + AT_ONCE]
            vectors = await embedder.embed([row["text"] for row in chosen], Purpose.DOCUMENT)
            dimension = vectors.shape[1]
            pairs = [
                (np.asarray(vector, np.float32).tobytes(), row["number"])
                for row, vector in zip(chosen, vectors, strict=True)
            ]
            database.executemany("UPDATE rows SET vector = ? WHERE rowid = ?", pairs)
        about = [("model", embedder.model), ("dimension", str(dimension))]
        database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about)
    return len(rows)


def _copied(file: Path, part: Path) -> None:
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new)
