"""The tables of the pipeline, and how those of an earlier version become them."""

from __future__ import annotations

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
