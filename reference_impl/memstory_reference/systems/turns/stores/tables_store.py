"""The tables of turns, their rows, and how those of earlier schemas of Postgres become them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memstory_reference.storage.postgres.tables import LITTLE_ENDIAN_VECTOR, postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable
from memstory_reference.storage.sql_database import SqlRow, checksum
from memstory_reference.systems.turns.ranking import BY_ASSISTANT, IS_DATED, IS_FOREIGN
from memstory_reference.systems.turns.stores.index import Features, microseconds, stem_codes
from memstory_reference.systems.turns.turn import ASSISTANT, KINDS, Turn

VERSION = 2
"""To be raised with every change of what is ranked of a turn, such as its signs or stems: then a store reads all its
texts again."""

COLUMNS = "number, id, key, kind, speaker, session, said_at, noted_at, text, metadata"
SEALED = f"{COLUMNS}, checksum"
WRITTEN_COLUMNS = ("id", "key", "kind", "speaker", "session", "said_at", "noted_at", "text", "metadata")
READ_COLUMNS = ("moment", "signs", "stems", "read_by", "checksum")
"""What is read of a text once, so that an owner can be opened without the texts."""

ALL_COLUMNS = (*WRITTEN_COLUMNS, *READ_COLUMNS)

# Texts stand last: what is read of all turns when an owner is opened lies before them.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (
    {columns}number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    key TEXT,
    kind TEXT NOT NULL,
    speaker TEXT,
    session TEXT,
    moment INTEGER,
    signs INTEGER,
    stems BLOB,
    read_by INTEGER,
    said_at TEXT,
    noted_at TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    checksum TEXT,
    UNIQUE ({owner}id),
    UNIQUE ({owner}key)
);
CREATE INDEX IF NOT EXISTS by_session ON turns ({owner}session, number);
CREATE TABLE IF NOT EXISTS vectors ({owner_column}number INTEGER PRIMARY KEY, vector BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What differs where a schema has the turns of many owners: `keys` are the columns that a row has there before.

    A statement there begins `within` an owner, and what is written says by which write in `changed`. `is_read` holds
    where what was read of a text is there, and may be what was written.
    """

    schema: str
    keys: str = ""
    within: str = ""
    changed: Sequence[str] = ()
    is_read: str


FILE = Tables(
    schema=_SCHEMA.format(columns="", owner="", owner_column=""),
    is_read="typeof(moment) = 'integer' AND typeof(signs) = 'integer' AND signs BETWEEN 0 AND 255 "
    "AND typeof(stems) = 'blob' AND length(stems) % 4 = 0",
)
FILE_VERSION = "3"
FILE_MIGRATIONS = {"2": "ALTER TABLE turns ADD COLUMN checksum TEXT"}

SHARED = Tables(
    schema=_SCHEMA.format(
        columns="owner INTEGER NOT NULL, changed INTEGER NOT NULL, ",
        owner="owner, ",
        owner_column="owner INTEGER NOT NULL, ",
    )
    + """
    CREATE INDEX IF NOT EXISTS by_change ON turns (owner, changed);
    CREATE TABLE IF NOT EXISTS owners (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        last INTEGER NOT NULL DEFAULT 0,
        turns INTEGER NOT NULL DEFAULT 0,
        version INTEGER NOT NULL DEFAULT 1
    );
    """,
    keys="owner, ",
    within="owner = ? AND ",
    changed=["changed"],
    is_read="moment IS NOT NULL AND signs BETWEEN 0 AND 255 AND length(stems) % 4 = 0",
)
"""`version` counts the writes of an owner, and `changed` is that by which a turn was written last."""

# What is old is kept beside first, for the new tables and indexes have some of its names. Numbers were once drawn for
# all owners together; here they count the turns of each.
_TAKEOVER = f"""
CREATE TEMPORARY TABLE was_turns ON COMMIT DROP AS SELECT t.*, o.name,
    row_number() OVER (PARTITION BY t.owner ORDER BY t.number) AS place
    FROM turns AS t JOIN owners AS o ON o.number = t.owner;
DROP TABLE postings, turns, owners;
{{tables}}
INSERT INTO owners (name, last, turns) SELECT name, count(*), count(*) FROM was_turns GROUP BY name;
INSERT INTO turns (owner, changed, number, {", ".join(WRITTEN_COLUMNS)})
    SELECT o.number, 1, w.place, {", ".join(f"w.{name}" for name in WRITTEN_COLUMNS)}
    FROM was_turns AS w JOIN owners AS o ON o.name = w.name ORDER BY o.number;
INSERT INTO vectors SELECT o.number, w.place, {LITTLE_ENDIAN_VECTOR.format(vector="w.vector")}
    FROM was_turns AS w JOIN owners AS o ON o.name = w.name ORDER BY o.number;
"""  # noqa: S608  (constants)


def migrations() -> Mapping[int, str]:
    """Return what makes a schema of Postgres, out of nothing or of an earlier one."""
    # Vectors are read packed: never out of line.
    tables = f"{postgres_tables(SHARED.schema, 'owner INTEGER')} ALTER TABLE vectors ALTER vector SET STORAGE MAIN;"
    takeover = _TAKEOVER.format(tables=tables)
    return {0: tables, 1: takeover, 2: takeover, 3: takeover}


def turn_of(row: SqlRow) -> Turn:
    """Return the turn of a row that has `COLUMNS`; ValueError or TypeError of one that memstory has not written so."""
    turn = Turn(
        id=row["id"],
        text=row["text"],
        noted_at=datetime.fromisoformat(row["noted_at"]),
        kind=row["kind"],
        key=row["key"],
        speaker=row["speaker"],
        session=row["session"],
        said_at=row["said_at"],
        metadata={} if row["metadata"] == "{}" else json.loads(row["metadata"]),
    )
    optional = (turn.key, turn.speaker, turn.session)
    if not all(isinstance(one, str) for one in (turn.id, turn.text, *(one for one in optional if one is not None))):
        raise TypeError("a text is none")
    if turn.kind not in KINDS or not isinstance(turn.metadata, dict):
        raise ValueError("its kind or its metadata is none")
    if turn.moment.tzinfo is None or turn.noted_at.tzinfo is None:
        raise ValueError("its moment has no offset")
    return turn


def seal_of(values: Sequence[Any]) -> str:
    """Return the checksum of the values of `WRITTEN_COLUMNS`, but for the key: that goes over to another turn."""
    return checksum([values[0], *values[2:]])


def row_of(turn: Turn, stems: Sequence[str]) -> Sequence[Any]:
    """Return the values of `ALL_COLUMNS`."""
    values = (
        *(turn.id, turn.key, turn.kind, turn.speaker, turn.session, turn.said_at, turn.noted_at.isoformat(), turn.text),
        json.dumps(dict(turn.metadata), ensure_ascii=False),
    )
    features = features_of(turn, 0, len(stems))
    return *values, features.moment, features.signs, stem_codes(stems).tobytes(), VERSION, seal_of(values)


def features_of(turn: Turn, number: int, words: int) -> Features:
    """Return what is ranked of a turn that has so many words."""
    return Features(
        number=number,
        moment=microseconds(turn.moment),
        kind=turn.kind,
        session=turn.session,
        speaker=turn.speaker,
        signs=IS_DATED * (turn.said_at is not None)
        | BY_ASSISTANT * (turn.role == ASSISTANT)
        | IS_FOREIGN * turn.is_foreign,
        words=words,
    )


EMBEDDED_FILE = EmbeddedFile(
    name=f"{'[0-9a-f]' * 32}.sqlite3",
    schema=FILE.schema,
    version=FILE_VERSION,
    migrations=FILE_MIGRATIONS,
    tables=[
        EmbeddedTable(
            select=f"SELECT {COLUMNS} FROM turns ORDER BY number",  # noqa: S608
            update="INSERT OR REPLACE INTO vectors (vector, number) VALUES (?, ?)",
            text=lambda row: turn_of(row).embedded,
        )
    ],
)
