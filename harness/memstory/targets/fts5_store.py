"""Memories in one SQLite file, found by FTS5's bm25: all the SQL of the target `fts5`."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from memstory.errors import Refused
from memstory.target import Hit, Item, Json, Query, Ref, Scope

VERSION: Final = f"SQLite {sqlite3.sqlite_version} FTS5"

_WORDS_ASKED: Final = 32
"""More words of one query cost time and hardly change the ranking."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, session TEXT, key TEXT, kind TEXT,
    text TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_user ON memories (user, key);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (owner, body);
"""
_COLUMNS: Final = "m.id, m.text, m.kind, m.key, m.created_at, m.metadata"
_VALUE: Final = "EXISTS (SELECT 1 FROM json_each(m.metadata) e WHERE e.key = ? AND e.value = ? AND e.type"
# SQLite has no booleans: without the type, true would be found as 1.
_IS: Final = f"{_VALUE} NOT IN ('true', 'false'))"
_IS_TRUE_OR_FALSE: Final = f"{_VALUE} IN ('true', 'false'))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A part of a WHERE clause over `memories m`, with its values."""

    sql: str
    values: Sequence[Json] = ()


class Fts5Store:
    """The file; use it in the thread that made it. Each method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, items: Sequence[Item], scope: Scope, now: str) -> list[tuple[str, bool]]:
        """Store all of `items` or none; return the id of each, and whether it replaced what its key named."""
        with self._connection:
            return [self._add(item, scope, now) for item in items]

    def find(self, conditions: Sequence[Condition], limit: int | None = None) -> list[Hit]:
        """Return memories, oldest first."""
        where, values = _joined(conditions)
        sql = f"SELECT {_COLUMNS}, NULL FROM memories m WHERE {where} ORDER BY m.id LIMIT ?"  # noqa: S608  (our own words)
        with closing(self._connection.execute(sql, [*values, -1 if limit is None else limit])) as rows:
            return [_hit(row) for row in rows]

    def search(self, query: Query, scope: Scope, conditions: Sequence[Condition]) -> list[Hit]:
        """Return memories that share a word with the query, best first."""
        asked = match_of(query.text, scope.user)
        if asked is None:
            return []
        where, values = _joined([Condition(sql="words MATCH ?", values=[asked]), *conditions])
        # The owner's tag is only there to be matched: it counts nothing.
        sql = f"""SELECT {_COLUMNS}, -bm25(words, 0.0, 1.0) AS score FROM words JOIN memories m ON m.id = words.rowid
                  WHERE {where} ORDER BY score DESC, m.id LIMIT ?"""  # noqa: S608  (our own words)
        limit = -1 if query.top_k is None else query.top_k
        with closing(self._connection.execute(sql, [*values, limit])) as rows:
            return [_hit(row) for row in rows]

    def rewrite(self, id_: str, item: Item) -> None:
        """Replace the text of a memory, and its metadata where `item` has some."""
        with self._connection:
            self._connection.execute("UPDATE memories SET text = ? WHERE id = ?", [item.text, id_])
            if item.metadata:
                self._connection.execute("UPDATE memories SET metadata = ? WHERE id = ?", [_json(item), id_])
            self._connection.execute("UPDATE words SET body = ? WHERE rowid = ?", [item.text, id_])

    def delete(self, conditions: Sequence[Condition]) -> bool:
        """Delete memories; return whether there were any."""
        where, values = _joined(conditions)
        found = f"SELECT m.id FROM memories m WHERE {where}"  # noqa: S608  (our own words)
        with self._connection:
            self._connection.execute(f"DELETE FROM words WHERE rowid IN ({found})", values)  # noqa: S608  (the same)
            return self._connection.execute(f"DELETE FROM memories WHERE id IN ({found})", values).rowcount > 0  # noqa: S608  (the same)

    def _add(self, item: Item, scope: Scope, now: str) -> tuple[str, bool]:
        known = self.find(named(Ref(key=item.key, kind=item.kind), scope.user)) if item.key is not None else []
        if known:
            self._connection.execute("DELETE FROM words WHERE rowid = ?", [known[0].id])
            self._connection.execute("DELETE FROM memories WHERE id = ?", [known[0].id])
        id_ = self._connection.execute(
            "INSERT INTO memories (id, user, session, key, kind, text, metadata, created_at) VALUES (?,?,?,?,?,?,?,?)",
            [
                known[0].id if known else None,
                scope.user,
                scope.session,
                item.key,
                item.kind,
                item.text,
                _json(item),
                now,
            ],
        ).lastrowid
        self._connection.execute(
            "INSERT INTO words (rowid, owner, body) VALUES (?, ?, ?)", [id_, _tag(scope.user), item.text]
        )
        return str(id_), bool(known)


def match_of(text: str, user: str) -> str | None:
    """Return the words of `text` as an expression of FTS5 within the memories of `user`; None if it has no word.

    What users type is no query language here: quotes, colons and stars would change its meaning.
    """
    words = dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower()))
    asked = " OR ".join(f'"{word}"' for word in list(words)[:_WORDS_ASKED])
    return f'owner : "{_tag(user)}" AND body : ({asked})' if asked else None


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


def having(metadata: dict[str, Json]) -> list[Condition]:
    """Return what is true of memories with these values."""
    conditions = []
    for name, value in metadata.items():
        if not isinstance(value, (str, int, float)):
            raise Refused(f"where: {name} is compared with a text, number or boolean, not with {value!r:.80}")
        conditions.append(Condition(sql=_IS_TRUE_OR_FALSE if isinstance(value, bool) else _IS, values=[name, value]))
    return conditions


def _joined(conditions: Sequence[Condition]) -> tuple[str, list[Json]]:
    return " AND ".join(one.sql for one in conditions), [value for one in conditions for value in one.values]


def _tag(user: str) -> str:
    # One word for the tokenizer, whatever characters the user's name has.
    return f"u{blake2b(user.encode(), digest_size=16).hexdigest()}"


def _json(item: Item) -> str:
    return json.dumps(dict(item.metadata))


def _hit(row: tuple[Json, ...]) -> Hit:
    id_, text, kind, key, created_at, metadata, score = row
    return Hit(
        id=str(id_), text=text, score=score, kind=kind, key=key, created_at=created_at, metadata=json.loads(metadata)
    )
