"""The tables of the pipeline, and how their rows become memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.postgres.tables import postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in
from memstory_reference.storage.sql_database import SqlDatabase
from memstory_reference.storage.table import Column, Table
from memstory_reference.storage.vector_matrix import unit_vector
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk, Vector, content_hash

SCHEMA_VERSION = "2"


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryTable(Table[MemoryChunk]):
    """A table of memories; `found` is the condition of a recall."""

    keys: str = "UNIQUE (owner, id)"
    kind: type[MemoryChunk] = MemoryChunk
    seal: str = "hash"
    sealed: Sequence[str] = ("content",)
    digest: Callable[[Sequence[Any]], object] = lambda sealed: content_hash(*sealed)
    called: str = "memory {}"
    advice: str = "Restore a backup, or delete it by its id"
    found: str


def stamp(moment: datetime) -> str:
    """Return a moment as texts that sort by time."""
    return moment.isoformat(timespec="microseconds")


_TEXT, _OPTIONAL, _NUMBER = Column("TEXT NOT NULL"), Column("TEXT"), Column("INTEGER NOT NULL")
_MOMENT, _TRUTH = Column("TEXT NOT NULL", datetime.fromisoformat, stamp), Column("INTEGER NOT NULL", bool, int)
_SHARED = {
    "row": Column("INTEGER PRIMARY KEY"),
    "owner": Column("TEXT NOT NULL", field="user_id"),
    "id": _TEXT,
    "content": _TEXT,
    "hash": _TEXT,
    "session": Column("TEXT NOT NULL", field="session_id"),
    "importance": Column("REAL NOT NULL"),
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
    "role": _TEXT,
    "source": _OPTIONAL,
    "times_seen": _NUMBER,
}
MEMORIES = MemoryTable(
    name="memories",
    columns={
        **_SHARED,
        "kind": Column("TEXT NOT NULL", ChunkType, str, "memory_type"),
        "compressed": _TRUTH,
        "summary": Column("TEXT", field="summary_id"),
        "source_session": Column("TEXT", field="source_session_id"),
        "compression_source": _TRUTH,
        "vector": Column("BLOB NOT NULL"),
    },
    indexes="""
CREATE INDEX IF NOT EXISTS by_hash ON memories (owner, hash);
CREATE INDEX IF NOT EXISTS by_session ON memories (owner, kind, compressed, session, created_at);
CREATE INDEX IF NOT EXISTS by_summary ON memories (owner, summary) WHERE summary IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_source ON memories (owner, source_session) WHERE compression_source = 1;
""",
    found="(compressed = 0 OR summary IS NULL)",
)
PREFERENCES = MemoryTable(
    name="preferences",
    columns={**_SHARED, "key": _TEXT, "replaced_by": _OPTIONAL, "vector": Column("BLOB")},
    fixed={"memory_type": ChunkType.PROCEDURAL},
    indexes="""
CREATE UNIQUE INDEX IF NOT EXISTS by_key ON preferences (owner, key) WHERE replaced_by IS NULL;
CREATE INDEX IF NOT EXISTS by_successor ON preferences (owner, replaced_by) WHERE replaced_by IS NOT NULL;
""",
    found="replaced_by IS NULL",
)
TABLES = (MEMORIES, PREFERENCES)
_CACHES = """
CREATE TABLE IF NOT EXISTS embeddings (
    row INTEGER PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (owner, hash)
);
CREATE TABLE IF NOT EXISTS centroids (owner TEXT PRIMARY KEY, total BLOB NOT NULL, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS versions (
    owner TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (owner, name)
);
"""

SCHEMA = f"{MEMORIES.schema}{PREFERENCES.schema}{_CACHES}"
FILE_SCHEMA = f"""{SCHEMA}
INSERT INTO versions SELECT owner, 'rows', hex(randomblob(8))
    FROM (SELECT owner FROM memories UNION SELECT owner FROM preferences) WHERE NOT EXISTS (SELECT 1 FROM versions);
"""  # noqa: S608  (constants)
"""What makes the tables in a file; the owners in one of an earlier version get versions, so as to be read once."""

MIGRATIONS = (postgres_tables(SCHEMA),)
"""What makes the tables in Postgres."""


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
