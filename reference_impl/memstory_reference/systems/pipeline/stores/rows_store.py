"""The tables of the pipeline, and how their rows become memories."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.database_store import Database
from memstory_reference.storage.vector_matrix import usable
from memstory_reference.systems.pipeline.memory import MemoryChunk, MemoryType

SCHEMA_VERSION = "2"

_MEMORIES = """
CREATE TABLE IF NOT EXISTS memories (
    row INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    hash TEXT NOT NULL,
    session TEXT NOT NULL,
    importance REAL NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    role TEXT NOT NULL,
    source TEXT,
    times_seen INTEGER NOT NULL,
    compressed INTEGER NOT NULL,
    summary TEXT,
    source_session TEXT,
    compression_source INTEGER NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (owner, id)
);
CREATE INDEX IF NOT EXISTS by_hash ON memories (owner, hash);
CREATE INDEX IF NOT EXISTS by_session ON memories (owner, kind, compressed, session, created_at);
CREATE INDEX IF NOT EXISTS by_summary ON memories (owner, summary) WHERE summary IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_source ON memories (owner, source_session) WHERE compression_source = 1;
"""

_PREFERENCES = """
CREATE TABLE IF NOT EXISTS preferences (
    row INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    hash TEXT NOT NULL,
    session TEXT NOT NULL,
    importance REAL NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    role TEXT NOT NULL,
    source TEXT,
    times_seen INTEGER NOT NULL,
    replaced_by TEXT,
    vector BLOB,
    UNIQUE (owner, id)
);
CREATE UNIQUE INDEX IF NOT EXISTS by_key ON preferences (owner, key) WHERE replaced_by IS NULL;
CREATE INDEX IF NOT EXISTS by_successor ON preferences (owner, replaced_by) WHERE replaced_by IS NOT NULL;
"""

_CACHES = """
CREATE TABLE IF NOT EXISTS embeddings (
    row INTEGER PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (owner, hash)
);
CREATE TABLE IF NOT EXISTS centroids (owner TEXT PRIMARY KEY, total BLOB NOT NULL, count INTEGER NOT NULL);
"""

SCHEMA = f"{_MEMORIES}{_PREFERENCES}{_CACHES}"

MEMORY_COLUMNS = (
    "owner, id, kind, content, hash, session, importance, created_at, updated_at, role, source, times_seen, "
    "compressed, summary, source_session, compression_source"
)
_FIRST_PREFERENCE_COLUMNS = (
    "owner, id, key, content, hash, session, importance, created_at, updated_at, role, source, times_seen"
)
PREFERENCE_COLUMNS = f"{_FIRST_PREFERENCE_COLUMNS}, replaced_by"

_HISTORY_AND_VECTORS = f"""
DROP TABLE IF EXISTS outbox;
INSERT OR IGNORE INTO about SELECT 'dimension', length(vector) / 4 FROM memories
    GROUP BY length(vector) ORDER BY count(*) DESC LIMIT 1;
UPDATE memories SET summary = NULL WHERE summary IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memories AS s
    WHERE s.owner = memories.owner AND s.id = memories.summary AND s.compression_source = 1);
ALTER TABLE preferences RENAME TO earlier;
{_PREFERENCES}
INSERT INTO preferences ({PREFERENCE_COLUMNS}, vector) SELECT {_FIRST_PREFERENCE_COLUMNS}, NULL,
    (SELECT e.vector FROM embeddings AS e WHERE e.owner = earlier.owner AND e.hash = earlier.hash)
    FROM earlier ORDER BY row;
DROP TABLE earlier
"""  # noqa: S608  (constants)

MIGRATIONS = (_HISTORY_AND_VECTORS,)
"""From 1 to 2: preferences have a history and a vector, which was cached; nothing is hidden without a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Which memories a recall may return (P-16, PF-8, PF-15).

    Of working memories: those of `session`, or without one those made since `working_since`.
    """

    kinds: Sequence[MemoryType]
    least_importance: float
    working_since: datetime
    include_compressed: bool = False
    session: str | None = None


def condition(admission: Admission, *, is_by_id: bool = False) -> tuple[str, list[object]]:
    """Return the SQL condition on a row of `memories`, and its parameters; `is_by_id` says that ids are named too."""
    marks = ", ".join("?" for _ in admission.kinds)
    # The plus keeps SQLite from walking through all rows of a type where a few ids are named.
    kind = "+kind" if is_by_id else "kind"
    # A rounded number stands for what was reached by it: 0.2 typed and 0.2 computed are the same.
    sql = f"{kind} IN ({marks}) AND importance >= ? - 1e-9"
    parameters: list[object] = [*map(str, admission.kinds), admission.least_importance]
    if not admission.include_compressed:
        sql += " AND (compressed = 0 OR summary IS NULL)"
    if admission.session is not None:
        sql += " AND (kind <> 'working' OR session = ?)"
        parameters.append(admission.session)
    else:
        sql += " AND (kind <> 'working' OR created_at >= ?)"
        parameters.append(stamp(admission.working_since))
    return sql, parameters


def stamp(moment: datetime) -> str:
    """Return a moment as texts that sort by time."""
    return moment.isoformat(timespec="microseconds")


def dimension_of(database: Database) -> int | None:
    """Return how many numbers each vector of the store has; None before the first."""
    row = database.execute("SELECT value FROM about WHERE name = 'dimension'").fetchone()
    return int(row["value"]) if row else None


def check_dimension(held: int | None, vector: NDArray[np.float32]) -> None:
    """Raise StoreConflictError for a vector that cannot be compared with those of the store."""
    if held not in (None, len(vector)):
        raise StoreConflictError(
            f"the store holds vectors of {held} numbers, not {len(vector)}: another model answers under the same name. "
            "Use the model that the store was made with, or another folder"
        )


def vector_of(blob: bytes | None) -> NDArray[np.float32]:
    """Return a stored vector; one of no numbers where there is none, or the file was damaged."""
    return np.frombuffer(blob if blob and len(blob) % 4 == 0 else b"", np.float32)


def is_countable(vector: NDArray[np.float32], held: int | None) -> bool:
    """Say whether a stored vector can be compared with the others."""
    return len(vector) == held and usable(vector) is not None


def memory_values(memory: MemoryChunk, content_hash: str) -> tuple[object, ...]:
    """Return the values of `MEMORY_COLUMNS`."""
    return (
        memory.user_id,
        memory.id,
        str(memory.memory_type),
        memory.content,
        content_hash,
        memory.session_id,
        memory.importance,
        stamp(memory.created_at),
        stamp(memory.updated_at),
        memory.role,
        memory.source,
        memory.times_seen,
        memory.compressed,
        memory.summary_id,
        memory.source_session_id,
        memory.compression_source,
    )


def preference_values(memory: MemoryChunk, content_hash: str) -> tuple[object, ...]:
    """Return the values of `PREFERENCE_COLUMNS`."""
    return (
        memory.user_id,
        memory.id,
        memory.key,
        memory.content,
        content_hash,
        memory.session_id,
        memory.importance,
        stamp(memory.created_at),
        stamp(memory.updated_at),
        memory.role,
        memory.source,
        memory.times_seen,
        memory.replaced_by,
    )


def memory_of(row: sqlite3.Row) -> MemoryChunk:
    """Return the memory in a row of `memories`."""
    return MemoryChunk(
        id=row["id"],
        user_id=row["owner"],
        session_id=row["session"],
        memory_type=MemoryType(row["kind"]),
        content=row["content"],
        importance=row["importance"],
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        role=row["role"],
        source=row["source"],
        times_seen=row["times_seen"],
        compressed=bool(row["compressed"]),
        summary_id=row["summary"],
        source_session_id=row["source_session"],
        compression_source=bool(row["compression_source"]),
    )


def preference_of(row: sqlite3.Row) -> MemoryChunk:
    """Return the memory in a row of `preferences`."""
    return MemoryChunk(
        id=row["id"],
        user_id=row["owner"],
        session_id=row["session"],
        memory_type=MemoryType.PROCEDURAL,
        content=row["content"],
        importance=row["importance"],
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        key=row["key"],
        role=row["role"],
        source=row["source"],
        times_seen=row["times_seen"],
        replaced_by=row["replaced_by"],
    )
