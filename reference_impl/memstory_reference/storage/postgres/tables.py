"""Tables that are declared for SQLite, as Postgres has them: what grows is divided by hash of the owner."""

from __future__ import annotations

import re

PARTITIONS = 16
"""Parts of a table by hash of the owner. More cost every new schema: 64 take a second to make."""

LITTLE_ENDIAN_VECTOR = (
    "decode(regexp_replace(encode(substring(vector_send({vector}) FROM 5), 'hex'), "
    "'(..)(..)(..)(..)', '\\4\\3\\2\\1', 'g'), 'hex')"
)
"""The bytes of a vector of pgvector, whose numbers come with the highest byte first, after four other bytes."""

_NUMBER = "bigint NOT NULL DEFAULT nextval('row_numbers')"
# Names sort by their bytes, as in SQLite. A number that tells rows apart is drawn for all tables, for parts have no
# identity of their own.
_TYPES = {
    "INTEGER PRIMARY KEY AUTOINCREMENT": _NUMBER,
    "INTEGER PRIMARY KEY": _NUMBER,
    "INTEGER": "bigint",
    "REAL": "double precision",
    "BLOB": "bytea",
    "TEXT": 'text COLLATE "C"',
    " WITHOUT ROWID": "",
}
_TYPE = re.compile(rf"(\b|(?= ))({'|'.join(_TYPES)})\b")
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) (.*)", re.DOTALL)
_NUMBERED = re.compile(r"(\w+) INTEGER PRIMARY KEY")


def postgres_tables(declared: str, by: str = "owner TEXT") -> str:
    """Return what makes the tables and indexes of `declared`; those with the column `by` are divided by hash of it.

    Each key of such a table begins with that column.

    >>> print(postgres_tables("CREATE TABLE IF NOT EXISTS notes (text TEXT, weight REAL);"))
    CREATE SEQUENCE row_numbers;
    CREATE TABLE IF NOT EXISTS notes (text text COLLATE "C", weight double precision);
    """
    statements = (one.strip() for one in declared.split(";"))
    return "\n".join(["CREATE SEQUENCE row_numbers;", *(_statement(one, by) for one in statements if one)])


def parts_of(table: str) -> str:
    """Return the SQL that makes the parts of a table that is partitioned by hash."""
    return "".join(
        f"CREATE TABLE {table}_{part} PARTITION OF {table} FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {part});"
        for part in range(PARTITIONS)
    )


def _statement(declared: str, by: str) -> str:
    written = _TYPE.sub(lambda found: _TYPES[found[0]], declared)
    table, numbered = _TABLE.fullmatch(declared), _NUMBERED.search(declared)
    if table is None:
        return f"{written};"
    column = by.split(maxsplit=1)[0] if re.search(rf"\b{by}\b", declared) else ""
    key = ", ".join(filter(None, (column, numbered[1] if numbered else "")))
    keyed = f"ALTER TABLE {table[1]} ADD PRIMARY KEY ({key});" if numbered else ""
    if not column:
        return f"{written};{keyed}"
    return f"{written} PARTITION BY HASH ({column});\n{parts_of(table[1])}{keyed}"
