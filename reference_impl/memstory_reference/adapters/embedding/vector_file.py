"""Vectors by key in one SQLite file that several processes share."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

log = logging.getLogger(__name__)

BUSY_SECONDS = 5.0
KEYS_AT_ONCE = 1_000
PRUNED_SHARE = 8
"""A full file loses its oldest eighth."""

_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

# Not `WITHOUT ROWID`: the row's number says which is the oldest.
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = 16777216;
CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL);
"""
_KEEP = "INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)"
_PRUNE = "DELETE FROM vectors WHERE id <= (SELECT min(id) + (max(id) - min(id)) / ? FROM vectors)"

_T = TypeVar("_T")


class CacheLostError(Exception):
    """The file can be neither used nor rebuilt; the message says which and why."""


class VectorFile:
    """A file that is made when needed and rebuilt when broken; safe to use from several threads."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        # Two connections: in WAL mode a reader waits for no writer, unless they share a connection.
        self._reader = _Connection(path)
        self._writer = _Connection(path)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors of those keys that are there."""
        return self._use(self._reader, lambda database: dict(_read(database, keys)))

    def put(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Write all at once, then prune the oldest if the file has grown above its bound."""
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        self._use(self._writer, lambda database: self._write(database, rows))

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def _write(self, database: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]]) -> None:
        # `with` ends the transaction: commit, or rollback on an error.
        with database:
            database.executemany(_KEEP, rows)
            pages, free, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            if (pages - free) * size > self._max_bytes:
                database.execute(_PRUNE, (PRUNED_SHARE,))

    def _use(self, connection: _Connection, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            try:
                return connection.use(operation)
            except sqlite3.DatabaseError as error:
                if not _is_broken(error):
                    raise
            self.close()
            with FileLock(f"{self._path}.lock", timeout=BUSY_SECONDS):
                return self._remake(connection, operation)
        except (sqlite3.Error, OSError, Timeout) as error:
            raise CacheLostError(f"The embedding cache {self._path} cannot be used: {error}") from error

    def _remake(self, connection: _Connection, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            # Another process may have rebuilt it while this one waited for the lock.
            return connection.use(operation)
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise
            log.warning("The embedding cache %s was broken (%s); it starts empty", self._path, error)
        self.close()
        # The file itself goes last: who opens it before that finds it broken and waits for the lock.
        for suffix in ("-wal", "-shm", ""):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        return connection.use(operation)


class _Connection:
    """One lazy connection behind a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None

    def use(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._lock:
            if self._database is None:
                self._database = self._open()
            return operation(self._database)

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    def __del__(self) -> None:
        # An embedder's port has no `close`: dropping the embedder drops its file, without a ResourceWarning.
        self.close()

    def _open(self) -> sqlite3.Connection:
        # A cache is private: vectors tell much of the texts that they were made of.
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        database = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            database.executescript(_SCHEMA)
        except sqlite3.Error:
            database.close()
            raise
        return database


def _read(database: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, NDArray[np.float32]]]:
    for start in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[start : start + KEYS_AT_ONCE]
        marks = ",".join("?" * len(some))
        query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608  (question marks only)
        with closing(database.execute(query, some)) as rows:
            for key, vector in rows:
                yield key, np.frombuffer(vector, dtype="<f4")


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    # The low byte is the kind; higher bits tell details. An error of the module itself has no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN
