"""The tables of the pipeline, and how their rows become memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.postgres.tables import postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in
from memstory_reference.storage.sql_database import SqlDatabase, SqlRow
from memstory_reference.storage.vector_matrix import unit_vector
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk, Vector, content_hash

SCHEMA_VERSION = "2"

_COMMON = """
    row INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    hash TEXT NOT NULL,
    session TEXT NOT NULL,
    importance REAL NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    role TEXT NOT NULL,
    source TEXT,
    times_seen INTEGER NOT NULL,
"""
_MEMORIES = f"""
CREATE TABLE IF NOT EXISTS memories ({_COMMON}
    kind TEXT NOT NULL,
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
_PREFERENCES = f"""
CREATE TABLE IF NOT EXISTS preferences ({_COMMON}
    key TEXT NOT NULL,
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
CREATE TABLE IF NOT EXISTS versions (
    owner TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (owner, name)
);
"""

SCHEMA = f"{_MEMORIES}{_PREFERENCES}{_CACHES}"
FILE_SCHEMA = f"""{SCHEMA}
INSERT INTO versions SELECT owner, 'rows', hex(randomblob(8))
    FROM (SELECT owner FROM memories UNION SELECT owner FROM preferences) WHERE NOT EXISTS (SELECT 1 FROM versions);
"""  # noqa: S608  (constants)
"""What makes the tables in a file; the owners in one of an earlier version get versions, so as to be read once."""

MIGRATIONS = (postgres_tables(SCHEMA),)
"""What makes the tables in Postgres."""

_RENAMED = {
    "owner": "user_id",
    "kind": "memory_type",
    "session": "session_id",
    "summary": "summary_id",
    "source_session": "source_session_id",
}
"""Columns that a memory has under another name."""
_READ: Mapping[str, Callable[[Any], object]] = {
    "kind": ChunkType,
    "created_at": datetime.fromisoformat,
    "updated_at": datetime.fromisoformat,
    "compressed": bool,
    "compression_source": bool,
}
_SHARED = (
    "owner",
    "id",
    "content",
    "session",
    "importance",
    "created_at",
    "updated_at",
    "role",
    "source",
    "times_seen",
)


class MemoryTable:
    """A table of memories, with the columns that it has beside those of both; `found` is the condition of a recall."""

    def __init__(self, name: str, *own: str, found: str) -> None:
        self.name = name
        self.found = found
        self._columns = (*_SHARED, *own)
        self._fields = [(column, _RENAMED.get(column, column), _READ.get(column)) for column in self._columns]

    @property
    def select(self) -> str:
        """The query of a user's rows, to which conditions may be added."""
        return f"SELECT {', '.join(self._columns)}, hash FROM {self.name} WHERE owner = ?"  # noqa: S608  (constants)

    @property
    def insert(self) -> str:
        """The statement that takes what `values` returns, and a vector."""
        columns = (*self._columns, "hash", "vector")
        return f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608

    def values(self, memory: MemoryChunk) -> tuple[object, ...]:
        """Return a memory as a row of this table, without its vector."""
        return (*(_plain(getattr(memory, name)) for _, name, _ in self._fields), content_hash(memory.content))

    def memory(self, row: SqlRow) -> MemoryChunk:
        """Return the memory in a row; ValueError, TypeError or AttributeError where the row is damaged."""
        if content_hash(row["content"]) != row["hash"]:
            raise ValueError("its text was changed outside memstory")
        if not isinstance(row["importance"], (int, float)) or isinstance(row["session"], bytes):
            raise TypeError("its session or its importance is none")
        fields: dict[str, Any] = {"memory_type": ChunkType.PROCEDURAL}
        for column, name, read in self._fields:
            fields[name] = read(row[column]) if read else row[column]
        return MemoryChunk(**fields)


MEMORIES = MemoryTable(
    *("memories", "kind", "compressed", "summary", "source_session", "compression_source"),
    found="(compressed = 0 OR summary IS NULL)",
)
PREFERENCES = MemoryTable("preferences", "key", "replaced_by", found="replaced_by IS NULL")
TABLES = (MEMORIES, PREFERENCES)


def stamp(moment: datetime) -> str:
    """Return a moment as texts that sort by time."""
    return moment.isoformat(timespec="microseconds")


def dimension_of(database: SqlDatabase) -> int | None:
    """Return how many numbers each vector of the store has; None before the first."""
    row = database.execute("SELECT value FROM about WHERE name = 'dimension'").fetchone()
    if row and not row["value"].isdecimal():
        raise UnavailableError(
            f"{database.place} is damaged: its vectors have {row['value']!r:.40} numbers; restore a backup, "
            "or use another folder"
        )
    return int(row["value"]) if row else None


def vector_of(stored: object, dimension: int | None) -> Vector | None:
    """Return a stored vector; None of one that cannot be compared with the others."""
    vector = unit_vector(stored)
    return vector if vector is not None and len(vector) == dimension else None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, bool):
        return int(value)
    return str(value) if isinstance(value, ChunkType) else value


EMBEDDED_FILE = EmbeddedFile(
    name="pipeline.sqlite3",
    schema=SCHEMA,
    version=SCHEMA_VERSION,
    tables=[
        EmbeddedTable(
            select=f"SELECT row, content FROM {table.name} ORDER BY row",  # noqa: S608
            update=f"UPDATE {table.name} SET vector = ? WHERE row = ?",  # noqa: S608
            text=text_in("content"),
        )
        for table in TABLES
    ],
    # A sum that cannot be read is counted again.
    afterwards=("DELETE FROM embeddings", "UPDATE centroids SET total = x''"),
)
