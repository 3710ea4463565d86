"""Memories in one SQLite file, found by FTS5's bm25: all the SQL of the target `fts5`."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Final

from memstory.contract.target import Hit, Item, Query, Ref, Scope
from memstory.targets.sqlite_store import (
    COLUMNS,
    Condition,
    connected,
    find,
    hit_of,
    insert,
    joined,
    named,
    rewrite,
)

VERSION: Final = f"SQLite {sqlite3.sqlite_version} FTS5"

_WORDS_ASKED: Final = 32
"""More words of one query cost time and hardly change the ranking."""

_WORDS: Final = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (owner, body);"


class Fts5Store:
    """The file; use it in the thread that made it. Each method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._connection = connected(sqlite3, path)
        self._connection.execute(_WORDS)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, items: Sequence[Item], scope: Scope, now: str) -> list[tuple[str, bool]]:
        """Store all of `items` or none; return the id of each, and whether it replaced what its key named."""
        with self._connection:
            return [self._add(item, scope, now) for item in items]

    def find(self, conditions: Sequence[Condition], limit: int | None = None) -> list[Hit]:
        """Return memories, oldest first."""
        return find(self._connection, conditions, limit)

    def search(self, query: Query, scope: Scope, conditions: Sequence[Condition]) -> list[Hit]:
        """Return memories that share a word with the query, best first."""
        asked = match_of(query.text, scope.user)
        if asked is None:
            return []
        where, values = joined([Condition(sql="words MATCH ?", values=[asked]), *conditions])
        # The owner's tag is only there to be matched: it counts nothing.
        sql = f"""SELECT {COLUMNS}, -bm25(words, 0.0, 1.0) AS score FROM words JOIN memories m ON m.id = words.rowid
                  WHERE {where} ORDER BY score DESC, m.id LIMIT ?"""  # noqa: S608  (our own words)
        limit = -1 if query.top_k is None else query.top_k
        with closing(self._connection.execute(sql, [*values, limit])) as rows:
            return [hit_of(row) for row in rows]

    def rewrite(self, id_: str, item: Item) -> None:
        """Replace the text of a memory, and its metadata where `item` has some."""
        with self._connection:
            rewrite(self._connection, id_, item)
            self._connection.execute("UPDATE words SET body = ? WHERE rowid = ?", [item.text, id_])

    def delete(self, conditions: Sequence[Condition]) -> bool:
        """Delete memories; return whether there were any."""
        where, values = joined(conditions)
        found = f"SELECT m.id FROM memories m WHERE {where}"  # noqa: S608  (our own words)
        with self._connection:
            self._connection.execute(f"DELETE FROM words WHERE rowid IN ({found})", values)  # noqa: S608  (the same)
            return self._connection.execute(f"DELETE FROM memories WHERE id IN ({found})", values).rowcount > 0  # noqa: S608  (the same)

    def _add(self, item: Item, scope: Scope, now: str) -> tuple[str, bool]:
        known = self.find(named(Ref(key=item.key, kind=item.kind), scope.user)) if item.key is not None else []
        if known:
            self._connection.execute("DELETE FROM words WHERE rowid = ?", [known[0].id])
            self._connection.execute("DELETE FROM memories WHERE id = ?", [known[0].id])
        id_ = insert(self._connection, item, scope, now, known[0].id if known else None)
        self._connection.execute(
            "INSERT INTO words (rowid, owner, body) VALUES (?, ?, ?)", [id_, _tag(scope.user), item.text]
        )
        return id_, bool(known)


def match_of(text: str, user: str) -> str | None:
    """Return the words of `text` as an expression of FTS5 within the memories of `user`; None if it has no word.

    What users type is not a query language here: quotes, colons and stars would change its meaning.
    """
    words = dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower()))
    asked = " OR ".join(f'"{word}"' for word in list(words)[:_WORDS_ASKED])
    return f'owner : "{_tag(user)}" AND body : ({asked})' if asked else None


def _tag(user: str) -> str:
    # One word for the tokenizer, whatever characters the user's name has.
    return f"u{blake2b(user.encode(), digest_size=16).hexdigest()}"
