"""The tables of the pipeline, and how their rows become memories."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.pipeline.memory import MemoryChunk, MemoryType

SCHEMA_VERSION = "1"

SCHEMA = """
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
    UNIQUE (owner, key),
    UNIQUE (owner, id)
);
CREATE TABLE IF NOT EXISTS embeddings (
    row INTEGER PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (owner, hash)
);
CREATE TABLE IF NOT EXISTS centroids (owner TEXT PRIMARY KEY, total BLOB NOT NULL, count INTEGER NOT NULL);
DROP TABLE IF EXISTS outbox;
"""

MEMORY_COLUMNS = (
    "owner, id, kind, content, hash, session, importance, created_at, updated_at, role, source, times_seen, "
    "compressed, summary, source_session, compression_source"
)
PREFERENCE_COLUMNS = (
    "owner, id, key, content, hash, session, importance, created_at, updated_at, role, source, times_seen"
)


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


def vector_of(blob: bytes) -> NDArray[np.float32]:
    """Return a stored vector."""
    return np.frombuffer(blob, np.float32)


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
    )
