"""Which rows hold a keyword: by SQLite's full-text index, or in Postgres by a mark of each word.

Both answer for one owner alone, whatever others write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.sql_database import SqlDatabase, SqlRow
from memstory_reference.text.words import Keyword, fts_query, index_text, plain_words, spaced_words

SQLITE_WORDS = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(owner_tag, title, narrative, facts, task, tokenize = 'ascii');
"""
POSTGRES_WORDS = """
CREATE TABLE IF NOT EXISTS words (
    owner TEXT NOT NULL, row INTEGER NOT NULL, marks bigint[] NOT NULL, PRIMARY KEY (owner, row)
);
CREATE INDEX by_mark ON words USING gin (marks);
"""


class WordIndex(Protocol):
    """The words of each row, written in the transaction of the row."""

    def put(self, owner: str, row: int, texts: Sequence[str]) -> None:
        """Note the words of title, narrative, facts and task."""
        ...

    def drop(self, owner: str, row: int) -> None:
        """Forget the words of a row."""
        ...

    def holding(self, owner: str, keyword: Keyword) -> NDArray[np.int64]:
        """Return the numbers of the rows in one of whose texts the words of a keyword follow each other."""
        ...


class SqliteWords:
    """FTS5; a row of `words` has the number of its observation."""

    def __init__(self, database: SqlDatabase) -> None:
        self._db = database

    def put(self, owner: str, row: int, texts: Sequence[str]) -> None:
        self._db.execute(
            "INSERT INTO words (rowid, owner_tag, title, narrative, facts, task) VALUES (?, ?, ?, ?, ?, ?)",
            (row, _tag(owner), *map(index_text, texts)),
        )

    def drop(self, owner: str, row: int) -> None:
        self._db.execute("DELETE FROM words WHERE rowid = ?", (row,))

    def holding(self, owner: str, keyword: Keyword) -> NDArray[np.int64]:
        # The owner is part of MATCH: a join would first look at everybody's rows. As one text, for a common word
        # is in thousands of rows.
        expression = f'owner_tag : "{_tag(owner)}" AND {{title narrative facts task}} : ({fts_query([keyword])})'
        (listed,) = self._db.execute(
            "SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (expression,)
        ).fetchone()
        return np.fromstring(listed or "", np.int64, sep=",")


class PostgresWords:
    """A mark is a number made of owner and word, so that the index leads to the rows of one owner alone.

    A `tsvector` would need each word's owner in its text, and counts no positions after the 16,383rd word.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._db = database

    def put(self, owner: str, row: int, texts: Sequence[str]) -> None:
        marks = sorted({_mark(owner, word) for text in texts for word in plain_words(text)})
        self._db.execute("INSERT INTO words (owner, row, marks) VALUES (?, ?, ?::bigint[])", (owner, row, marks))

    def drop(self, owner: str, row: int) -> None:
        self._db.execute("DELETE FROM words WHERE owner = ? AND row = ?", (owner, row))

    def holding(self, owner: str, keyword: Keyword) -> NDArray[np.int64]:
        words = plain_words(keyword.text)
        marked = "FROM words WHERE owner = ? AND marks @> ?::bigint[]"
        given = (owner, [_mark(owner, word) for word in words])
        if len(words) == 1:
            # As one text, as above.
            (listed,) = self._db.execute(f"SELECT string_agg(CAST(row AS text), ',') {marked}", given).fetchone()
            return np.fromstring(listed or "", np.int64, sep=",")
        # A row may hold the words of a phrase in other places.
        texts = "SELECT row, title, narrative, facts, task FROM observations WHERE owner = ? AND row IN"
        rows = self._db.rows(f"{texts} (SELECT row {marked})", (owner, *given))
        return np.array([one["row"] for one in rows if _holds(one, keyword.text)], np.int64)


def _holds(row: SqlRow, phrase: str) -> bool:
    texts = (row["title"], row["narrative"], text_of_facts(row["facts"]), row["task"])
    return any(spaced_words(phrase) in spaced_words(text) for text in texts)


def text_of_facts(facts: str) -> str:
    """Return as one text the facts of a row, or what is there instead where it is damaged."""
    try:
        return "\n".join(texts_of(facts))
    except ValueError:
        return facts


def texts_of(text: str) -> tuple[str, ...]:
    """Return the texts in JSON; ValueError for anything else."""
    listed = json.loads(text)
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ValueError(f"expected a list of texts, found {text!r:.40}")
    return tuple(listed)


def _tag(owner: str) -> str:
    return "o" + hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _mark(owner: str, word: str) -> int:
    digest = hashlib.blake2b(f"{owner}\n{word}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
