"""A machine-wide cache of embeddings in SQLite, found by model and content; it can always be thrown away."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder, sent_texts
from memstory_reference.ports import Purpose, Vectors

FILE = "embeddings.sqlite3"
MAX_BYTES = 512 * 1024 * 1024
READ_AT_ONCE = 256
"""Texts that are looked up where the caller stands: fewer than what waking a thread would pay for."""

LENGTH_TOLERANCE = 1e-3

Row: TypeAlias = NDArray[np.float32]

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


class CachedEmbedder:
    """Asks `inner` only for texts it has not seen; with `path=None` (incognito) it asks for all and keeps nothing.

    `identity` returns what tells the model from every other, such as the digest of its weights, and is asked once; by
    default that is `inner.model`: never put it over `FixedVectors`.
    A cache that cannot be read or written is left out with one warning: it never stops an embedding.
    """

    def __init__(
        self,
        inner: ProfiledEmbedder,
        path: Path | None,
        *,
        identity: Callable[[], Awaitable[str]] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self._inner = inner
        self._ask_identity = identity
        self._identity = "" if identity else inner.model
        self._file = VectorFile(path, max_bytes=max_bytes) if path else None

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if self._file is None or not texts:
            return await self._ask(texts, purpose)
        if self._ask_identity and not self._identity:
            self._identity = await self._ask_identity()
        keys = _keys(self._identity, sent_texts(self.profile, texts, purpose))
        wanted = dict(zip(keys, texts, strict=True))
        known = await self._known(self._file, list(wanted))
        missing = {key: text for key, text in wanted.items() if key not in known}
        fresh = await self._fresh(missing, purpose) if missing else {}
        if len({len(vector) for vector in (*known.values(), *fresh.values())}) > 1:
            # A server may exchange a model under its name: what was kept is of the old one.
            fresh = await self._fresh(wanted, purpose)
        if fresh:
            await asyncio.to_thread(self._file.put, fresh)
            known |= fresh
        vectors = np.stack([known[key] for key in keys])
        self.dimension = vectors.shape[1]
        return vectors

    async def close(self) -> None:
        """Close the file; another `embed` opens it again."""
        if self._file is not None:
            await asyncio.to_thread(self._file.close)

    async def _ask(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = await self._inner.embed(texts, purpose)
        self.dimension = self._inner.dimension
        return vectors

    async def _fresh(self, texts: Mapping[bytes, str], purpose: Purpose) -> dict[bytes, Row]:
        return dict(zip(texts, await self._ask(list(texts.values()), purpose), strict=True))

    async def _known(self, file: VectorFile, keys: Sequence[bytes]) -> dict[bytes, Row]:
        found = file.get(keys) if len(keys) <= READ_AT_ONCE else await asyncio.to_thread(file.get, keys)
        return _sound(found, self._inner.dimension)


class VectorFile:
    """Vectors by key in one SQLite file that several processes share; safe to use from several threads.

    It is made when needed and rebuilt when broken. One that can be neither used nor rebuilt is left out, with one
    warning.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._is_lost = False
        self._lock = FileLock(f"{path}.lock", timeout=BUSY_SECONDS)
        # Two connections: in WAL mode a reader waits for no writer, unless they share a connection.
        self._reader = _Connection(path, self._lock)
        self._writer = _Connection(path, self._lock)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors of those keys that are there."""
        return self._use(self._reader, lambda database: dict(_read(database, keys))) or {}

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

    def _use(self, connection: _Connection, operation: Callable[[sqlite3.Connection], _T]) -> _T | None:
        if self._is_lost:
            return None
        try:
            try:
                return connection.use(operation)
            except sqlite3.DatabaseError as error:
                if not _is_broken(error):
                    raise
            self.close()
            with self._lock:
                return self._remake(connection, operation)
        except (sqlite3.Error, OSError, Timeout) as error:
            self._is_lost = True
            log.warning("The embedding cache %s cannot be used: %s; going on without a cache", self._path, error)
            return None

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

    def __init__(self, path: Path, making: FileLock) -> None:
        self._path = path
        self._making = making
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None

    def use(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        # Of two processes that turn a new file to WAL, SQLite has one wait for nothing: it fails at once.
        with self._making if self._database is None else nullcontext(), self._lock:
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


def _keys(model: str, sent: Sequence[str]) -> list[bytes]:
    # The model's name is hashed once; its length keeps ("ab", "c") apart from ("a", "bc").
    start = hashlib.blake2b(f"{len(model)}:{model}".encode(), digest_size=16)
    keys = []
    for text in sent:
        key = start.copy()
        key.update(text.encode())
        keys.append(key.digest())
    return keys


def _sound(found: Mapping[bytes, Row], dimension: int | None) -> dict[bytes, Row]:
    # SQLite does not notice a flipped bit in a vector; its length does.
    return {
        key: vector
        for key, vector in found.items()
        if dimension in (None, len(vector)) and abs(float(vector @ vector) - 1) <= LENGTH_TOLERANCE
    }
