"""What backends on SQLite share: a driver that loads extensions, the table of memories, what a search asks of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Hit, Item, Ref, Scope, Tree

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, session TEXT, key TEXT, kind TEXT,
    text TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_user ON memories (user, key);
"""
COLUMNS: Final = "m.id, m.text, m.kind, m.key, m.created_at, m.metadata"

_OTHER: Final = "pysqlite3"
_VALUE: Final = "EXISTS (SELECT 1 FROM json_each(m.metadata) e WHERE e.key = ? AND e.value = ? AND e.type"
# JSON in SQLite has whole numbers of 64 bits; of one beyond them it makes a float, and every second one is another's.
_IS_HUGE: Final = "same_number(m.metadata, ?, ?)"
_SQLITE_NUMBERS: Final = 2**63
# SQLite has no booleans: without the type, true would be found as 1.
_IS: Final = f"{_VALUE} NOT IN ('true', 'false'))"
_IS_TRUE_OR_FALSE: Final = f"{_VALUE} IN ('true', 'false'))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A part of a WHERE clause over `memories m`, with its values."""

    sql: str
    values: Sequence[Tree] = ()


def loading_driver() -> Any:
    """Return a module that works as `sqlite3` does and whose connections load extensions.

    Raises:
        NotSupported: there is none on this machine.
    """
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    if find_spec(_OTHER) is None:
        raise NotSupported(
            "search",
            "the sqlite3 of this Python cannot load extensions, and this backend searches by one. "
            f"Use a Python that can, or: pip install {_OTHER}",
        )
    return import_module(_OTHER)


def name_of(driver: Any) -> str:
    """Return what a report says of `driver`."""
    return f"SQLite {driver.sqlite_version} by {driver.__name__}"


def connected(driver: Any, path: Path) -> sqlite3.Connection:
    """Return an open file with the table of memories; `driver` works as `sqlite3` does."""
    connection: sqlite3.Connection = driver.connect(path)
    connection.create_function("same_number", 3, _is_same_number, deterministic=True)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCHEMA)
    return connection


def insert(connection: sqlite3.Connection, item: Item, scope: Scope, now: str, id_: str | None = None) -> str:
    """Write a memory and return its id: a new one, or the one that is given."""
    sql = "INSERT INTO memories (id, user, session, key, kind, text, metadata, created_at) VALUES (?,?,?,?,?,?,?,?)"
    values = [id_, scope.user, scope.session, item.key, item.kind, item.text, _json(item), now]
    return str(connection.execute(sql, values).lastrowid)


def rewrite(connection: sqlite3.Connection, id_: str, item: Item) -> None:
    """Replace the text of a memory, and its metadata where `item` has some."""
    connection.execute("UPDATE memories SET text = ? WHERE id = ?", [item.text, id_])
    if item.metadata:
        connection.execute("UPDATE memories SET metadata = ? WHERE id = ?", [_json(item), id_])


def find(connection: sqlite3.Connection, conditions: Sequence[Condition], limit: int | None = None) -> list[Hit]:
    """Return memories, oldest first."""
    where, values = joined(conditions)
    sql = f"SELECT {COLUMNS}, NULL FROM memories m WHERE {where} ORDER BY m.id LIMIT ?"  # noqa: S608  (our own words)
    return [hit_of(row) for row in connection.execute(sql, [*values, -1 if limit is None else limit]).fetchall()]


def within(scope: Scope) -> list[Condition]:
    """Return what is true of the memories in `scope`."""
    session = [] if scope.session is None else [Condition(sql="m.session = ?", values=[scope.session])]
    return [Condition(sql="m.user = ?", values=[scope.user]), *session]


def named(ref: Ref, user: str) -> list[Condition]:
    """Return what is true of the memory that `ref` names, in whatever session it was said."""
    name = (
        Condition(sql="m.id = ?", values=[ref.id])
        if ref.id is not None
        else Condition(sql="m.key = ?", values=[ref.key])
    )
    kind = [] if ref.kind is None else [Condition(sql="m.kind = ?", values=[ref.kind])]
    return [Condition(sql="m.user = ?", values=[user]), name, *kind]


def of_kinds(kinds: Sequence[str]) -> list[Condition]:
    """Return what is true of memories of these kinds; of all, if none is named."""
    marks = ", ".join("?" * len(kinds))
    return [Condition(sql=f"m.kind IN ({marks})", values=list(kinds))] if kinds else []


def having(metadata: dict[str, Tree]) -> list[Condition]:
    """Return what is true of memories with these values."""
    conditions = []
    for name, value in metadata.items():
        if not isinstance(value, (str, int, float)):
            raise Refused(f"where: {name} is compared with a text, number or boolean, not with {value!r:.80}")
        conditions.append(_has(name, value))
    return conditions


def _has(name: str, value: str | float) -> Condition:
    if isinstance(value, bool):
        return Condition(sql=_IS_TRUE_OR_FALSE, values=[name, value])
    if not isinstance(value, str) and abs(value) >= _SQLITE_NUMBERS:
        return Condition(sql=_IS_HUGE, values=[name, json.dumps(value)])
    return Condition(sql=_IS, values=[name, value])


def _is_same_number(metadata: str, name: str, number: str) -> bool:
    found = json.loads(metadata).get(name)
    return isinstance(found, (int, float)) and not isinstance(found, bool) and bool(found == json.loads(number))


def joined(conditions: Sequence[Condition]) -> tuple[str, list[Tree]]:
    """Return all conditions as one, and their values in order."""
    return " AND ".join(one.sql for one in conditions), [value for one in conditions for value in one.values]


def hit_of(row: tuple[Tree, ...]) -> Hit:
    """Return a row of `COLUMNS` and a score."""
    id_, text, kind, key, created_at, metadata, score = row
    return Hit(
        id=str(id_), text=text, score=score, kind=kind, key=key, created_at=created_at, metadata=json.loads(metadata)
    )


def _json(item: Item) -> str:
    return json.dumps(dict(item.metadata))
