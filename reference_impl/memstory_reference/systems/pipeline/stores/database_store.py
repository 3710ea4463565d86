"""The database of the pipeline: one connection, its transactions, and what file it may be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import StoreConflictError, UnavailableError
from memstory_reference.systems.pipeline.stores.rows_store import SCHEMA, SCHEMA_VERSION

_AT_ONCE = 500


class Database:
    """Blocking; one connection, used by one thread at a time."""

    def __init__(self, file: Path, *, model: str) -> None:
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        with self._translated():
            self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
            try:
                self._prepare(model)
            except BaseException:
                self._db.close()
                raise

    @property
    def changes(self) -> int:
        """How many rows were written since the opening; may be read from any thread."""
        return self._db.total_changes

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run one statement; UnavailableError where the file cannot be read or written."""
        with self._translated():
            return self._db.execute(sql, parameters)

    def executemany(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row."""
        with self._translated():
            self._db.executemany(sql, rows)

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # A disk that is full has rolled back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _prepare(self, model: str) -> None:
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        self._db.executescript(SCHEMA)
        for name, value in (("schema", SCHEMA_VERSION), ("model", model)):
            self._db.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, value))
            (found,) = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
            if found != value:
                raise StoreConflictError(
                    f"{self._file} was made with {name} {found!r}, not {value!r}: open it with {found!r}, "
                    "or use another folder"
                )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as problem:
            raise UnavailableError(
                f"{self._file} cannot be used: {problem}. Give it room on its disk, restore a backup, "
                "or use another folder"
            ) from problem


def parts(values: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield marks and distinct values, as many at once as a statement takes."""
    distinct = list(dict.fromkeys(values))
    for start in range(0, len(distinct), _AT_ONCE):
        part = distinct[start : start + _AT_ONCE]
        yield ", ".join("?" * len(part)), part


def vector_of(blob: bytes) -> NDArray[np.float32]:
    """Return a stored vector."""
    return np.frombuffer(blob, np.float32)
