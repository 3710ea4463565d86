"""The tables of the pipeline."""

from __future__ import annotations

from memstory_reference.storage.postgres.tables import postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in

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
CREATE TABLE IF NOT EXISTS versions (
    owner TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (owner, name)
);
"""

SCHEMA = f"{_MEMORIES}{_PREFERENCES}{_CACHES}"
MIGRATIONS = (postgres_tables(SCHEMA),)
"""What makes the tables in Postgres."""

MEMORY_COLUMNS = (
    "owner, id, kind, content, hash, session, importance, created_at, updated_at, role, source, times_seen, "
    "compressed, summary, source_session, compression_source"
)
PREFERENCE_COLUMNS = (
    "owner, id, key, content, hash, session, importance, created_at, updated_at, role, source, times_seen, replaced_by"
)

EMBEDDED_FILE = EmbeddedFile(
    name="pipeline.sqlite3",
    schema=SCHEMA,
    version=SCHEMA_VERSION,
    tables=[
        EmbeddedTable(
            select=f"SELECT row, content FROM {table} ORDER BY row",  # noqa: S608
            update=f"UPDATE {table} SET vector = ? WHERE row = ?",  # noqa: S608
            text=text_in("content"),
        )
        for table in ("memories", "preferences")
    ],
    # A sum that cannot be read is counted again.
    afterwards=("DELETE FROM embeddings", "UPDATE centroids SET total = x''"),
)
