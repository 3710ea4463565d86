"""The tables of the layers, and how those of earlier schemas of Postgres become them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b

from memstory_reference.storage.postgres.tables import LITTLE_ENDIAN_VECTOR, postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable
from memstory_reference.storage.sql_database import SqlRow, checksum
from memstory_reference.systems.layers.identity import iso_now, microseconds
from memstory_reference.systems.layers.records import (
    Layer,
    MemoryRecord,
    Standing,
    content_data,
    content_of,
    text_of,
)

SCHEMA_VERSION = "2"

# Rows and their tokens are of a namespace: an owner's layer.
SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    owner TEXT NOT NULL, session TEXT NOT NULL, started_at TEXT NOT NULL, last_at TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (owner, session)
);
CREATE TABLE IF NOT EXISTS turns (
    owner TEXT NOT NULL, session TEXT NOT NULL, number INTEGER NOT NULL, extracted INTEGER NOT NULL,
    data TEXT NOT NULL, checksum TEXT, PRIMARY KEY (owner, session, number)
);
CREATE TABLE IF NOT EXISTS namespaces (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, layer TEXT NOT NULL, UNIQUE (owner, layer)
);
CREATE TABLE IF NOT EXISTS records (
    row INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    session TEXT,
    count INTEGER NOT NULL,
    standing TEXT NOT NULL,
    superseded_by TEXT,
    vector BLOB,
    checksum TEXT,
    UNIQUE (namespace, id)
);
CREATE TABLE IF NOT EXISTS versions (owner TEXT PRIMARY KEY, version TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recall_off (owner TEXT PRIMARY KEY);
CREATE INDEX IF NOT EXISTS by_age ON records (namespace, standing, created_at DESC, id);
CREATE INDEX IF NOT EXISTS to_embed ON records (namespace, created_at) WHERE vector IS NULL;
CREATE TABLE IF NOT EXISTS tokens (
    namespace INTEGER NOT NULL, token TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (namespace, token, row)
) WITHOUT ROWID;
"""
COLUMNS = "row, namespace, id, content, created_at, updated_at, session, count, standing, superseded_by, checksum"
WRITTEN = "namespace, id, content, created_at, updated_at, session, count, standing, superseded_by, vector, checksum"

LONGEST_TOKEN = 64
"""Characters of a token that stand in Postgres as they are: an entry of its index has at most 2,704 bytes."""


def moment_as_text(column: str) -> str:
    """Return the SQL of Postgres that makes of a moment the text that `iso_now` makes."""
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')"""


# What is old is kept beside first, for the new tables and indexes have some of its names. Bit n of a
# part p was of the row 256 p + n.
_TAKEOVER = f"""
CREATE TEMPORARY TABLE was_owners ON COMMIT DROP AS SELECT number, name, next_row FROM owners;
CREATE TEMPORARY TABLE was_records ON COMMIT DROP AS SELECT * FROM records;
CREATE TEMPORARY TABLE was_vectors ON COMMIT DROP AS
    SELECT owner, row, {LITTLE_ENDIAN_VECTOR.format(vector="vector")} AS vector FROM vectors;
CREATE TEMPORARY TABLE was_tokens ON COMMIT DROP AS SELECT owner, layer, token, 256 * part + place AS row
    FROM postings, generate_series(0, 255) AS place WHERE get_bit(bits, place) = 1;
CREATE TEMPORARY TABLE was_sessions ON COMMIT DROP AS SELECT * FROM sessions;
CREATE TEMPORARY TABLE was_turns ON COMMIT DROP AS SELECT * FROM turns;
CREATE TEMPORARY TABLE was_off ON COMMIT DROP AS SELECT * FROM recall_off;
DROP TABLE records, vectors, sessions, turns, recall_off, owners;
DROP TABLE postings;
{{tables}}
SELECT setval('row_numbers', 1 + greatest((SELECT max(next_row) FROM was_owners), 0));
INSERT INTO namespaces (owner, layer)
    SELECT DISTINCT o.name, r.layer FROM was_records AS r JOIN was_owners AS o ON o.number = r.owner;
INSERT INTO records (row, {WRITTEN})
    SELECT r.row, n.number, r.id, r.content, {moment_as_text("r.created_at")}, {moment_as_text("r.updated_at")},
    r.session, r.count, r.standing, r.superseded_by, v.vector, NULL
    FROM was_records AS r JOIN was_owners AS o ON o.number = r.owner
    JOIN namespaces AS n ON n.owner = o.name AND n.layer = r.layer
    LEFT JOIN was_vectors AS v ON v.owner = r.owner AND v.row = r.row;
INSERT INTO tokens SELECT n.number, t.token, t.row FROM was_tokens AS t JOIN was_owners AS o ON o.number = t.owner
    JOIN namespaces AS n ON n.owner = o.name AND n.layer = t.layer;
INSERT INTO sessions
    SELECT owner, session, {moment_as_text("started_at")}, {moment_as_text("last_at")}, data FROM was_sessions;
INSERT INTO turns SELECT owner, session, number, extracted::int, data, NULL FROM was_turns;
INSERT INTO recall_off SELECT owner FROM was_off;
INSERT INTO versions SELECT owner, md5(random()::text) FROM (SELECT DISTINCT owner FROM namespaces) AS every;
"""  # noqa: S608  (constants)


def migrations() -> Mapping[int, str]:
    """Return what makes a schema of Postgres, out of nothing or of an earlier one."""
    # Vectors are read packed: never out of line.
    tables = f"{postgres_tables(SCHEMA, 'namespace INTEGER')} ALTER TABLE records ALTER vector SET STORAGE MAIN;"
    takeover = _TAKEOVER.format(tables=tables)
    return {0: tables, 4: takeover, 5: takeover}


def record_of(row: SqlRow, owner: str, layer: Layer) -> MemoryRecord:
    """Return the record of a row; ValueError or TypeError if it was changed outside memstory."""
    if isinstance(row["content"], bytes) or row["checksum"] not in (None, seal_of(row, owner, layer)):
        raise ValueError("its checksum does not fit")
    return MemoryRecord(
        id=row["id"],
        owner=owner,
        content=content_of(layer, json.loads(row["content"])),
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        session=row["session"],
        count=row["count"],
        standing=Standing(row["standing"]),
        superseded_by=row["superseded_by"],
    )


def values_of(record: MemoryRecord, namespace: int, vector: bytes | None) -> tuple[object, ...]:
    """Return the values of `WRITTEN`."""
    values = (
        json.dumps(content_data(record.content)),
        iso_now(record.created_at),
        iso_now(record.updated_at),
        record.session,
        record.count,
        str(record.standing),
        record.superseded_by,
    )
    seal = checksum([record.owner, record.layer, record.id, *values])
    return namespace, record.id, *values, vector, seal


def seal_of(row: SqlRow, owner: str, layer: str) -> str:
    """Return the checksum that a row must have."""
    names = ("content", "created_at", "updated_at", "session", "count", "standing", "superseded_by")
    return checksum([owner, layer, row["id"], *(row[name] for name in names)])


def entry_of(token: str) -> str:
    """Return a token as it stands in Postgres."""
    if len(token) <= LONGEST_TOKEN:
        return token
    return blake2b(token.encode("utf-8", "surrogatepass")).hexdigest()


def moment_of(created_at: str) -> int | None:
    """Return the microseconds of a stored moment; None of a damaged one."""
    try:
        return microseconds(datetime.fromisoformat(created_at))
    except (ValueError, TypeError):
        return None


def _text(row: SqlRow) -> str:
    return text_of(content_of(Layer(row["layer"]), json.loads(row["content"])))


EMBEDDED_FILE = EmbeddedFile(
    name="memory.sqlite3",
    schema=SCHEMA,
    version=SCHEMA_VERSION,
    tables=[
        EmbeddedTable(
            select="SELECT r.row, r.content, n.layer FROM records AS r JOIN namespaces AS n ON n.number = r.namespace "
            "ORDER BY r.row",
            update="UPDATE records SET vector = ? WHERE row = ?",
            text=_text,
        )
    ],
)
