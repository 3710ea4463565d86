"""Observations in SQL: the truth, the index of its words, and the outbox from which the vector index is kept.

Every write puts the row, its words and an outbox entry into one transaction, so a process killed between the two
indexes leaves work to do and never a half-known observation (OF-10, OF-16).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.postgres.tables import postgres_tables
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in
from memstory_reference.storage.sql_database import Database, SqlDatabase, SqlRow, checksum
from memstory_reference.storage.table import Column, Table
from memstory_reference.storage.vector_matrix import unit_vector
from memstory_reference.systems.observations.observation import Observation, normal_task
from memstory_reference.text.words import Keyword, fts_query, index_text, plain_words, spaced_words

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA_VERSION = "3"

SQLITE_WORDS = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(owner_tag, title, narrative, facts, task, tokenize = 'ascii');
"""
POSTGRES_WORDS = """
CREATE TABLE IF NOT EXISTS words (
    owner TEXT NOT NULL, row INTEGER NOT NULL, marks bigint[] NOT NULL, PRIMARY KEY (owner, row)
);
CREATE INDEX by_mark ON words USING gin (marks);
"""


def texts_of(text: str) -> tuple[str, ...]:
    """Return the texts in JSON; ValueError for anything else."""
    listed = json.loads(text)
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ValueError(f"expected a list of texts, found {text!r:.40}")
    return tuple(listed)


_TEXT = Column("TEXT NOT NULL")
_TEXTS = Column("TEXT NOT NULL", texts_of, lambda texts: json.dumps(list(texts), ensure_ascii=False))
_MOMENT = Column("TEXT NOT NULL", datetime.fromisoformat, lambda moment: moment.isoformat(timespec="microseconds"))
# Sealed as the engines give it back: a whole number as a fraction, and no zero below zero.
_SCORE = Column("REAL", write=lambda score: None if score is None else score + 0.0)
OBSERVATIONS = Table(
    name="observations",
    columns={
        "row": Column("INTEGER PRIMARY KEY"),
        "owner": _TEXT,
        "id": _TEXT,
        "title": _TEXT,
        "narrative": _TEXT,
        "facts": _TEXTS,
        "task": _TEXT,
        "task_type": _TEXT,
        "final_score": _SCORE,
        "rating": Column("REAL"),
        "timestamp": _MOMENT,
        "sources": _TEXTS,
        "vector": Column("BLOB NOT NULL"),
        "checksum": Column("TEXT"),
    },
    keys="UNIQUE (owner, id)",
    indexes="CREATE INDEX IF NOT EXISTS by_time ON observations (owner, timestamp DESC, row DESC);",
    kind=Observation,
    # All but the vector, and the rating, which changes.
    sealed=("owner", "id", "title", "narrative", "facts", "task", "task_type", "final_score", "timestamp", "sources"),
    called="observation {!r}",
    advice="Forget it, or restore a backup",
)
_TABLES = f"""{OBSERVATIONS.schema}
CREATE TABLE IF NOT EXISTS outbox (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, id TEXT NOT NULL
);
"""
_SCHEMA = f"""{_TABLES}{SQLITE_WORDS}
CREATE INDEX IF NOT EXISTS without_checksum ON observations (row) WHERE checksum IS NULL;
"""
MEMORY = "observations"
"""What a schema of Postgres says of itself."""


MIGRATIONS = (postgres_tables(f"{_TABLES}{POSTGRES_WORDS}"),)
"""What makes a schema of Postgres."""

_SEALED = "ALTER TABLE observations ADD COLUMN checksum TEXT"
_MIGRATIONS = {"1": f"DROP TABLE words; {_SEALED}", "2": _SEALED}
"""Of schema 1 the words were divided by other rules; `_index_all` divides them again."""
EMBEDDED = EmbeddedTable(
    select="SELECT row, narrative FROM observations ORDER BY row",
    update="UPDATE observations SET vector = ? WHERE row = ?",
    text=text_in("narrative"),
)
EMBEDDED_FILE = EmbeddedFile(
    name="observations.sqlite3", schema=_SCHEMA, version=SCHEMA_VERSION, migrations=_MIGRATIONS, tables=[EMBEDDED]
)
_TO_INDEX = "INSERT INTO outbox (owner, id) VALUES (?, ?)"


class PendingIndexing(NamedTuple):
    """An observation whose place in the vector index is to be brought up to date."""

    sequence: int
    owner: str
    id: str


class ObservationsStore:
    """Blocking; by a database that one thread uses at a time, or through `run`."""

    def __init__(self, database: SqlDatabase, words: Callable[[SqlDatabase], WordIndex]) -> None:
        self._db = database
        self._words_in = words
        self._words = words(database)

    async def run(self, work: Callable[Concatenate[ObservationsStore, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Work by a database that is lent for this alone: calls need not wait for one another."""
        return await self._db.run(lambda database: work(ObservationsStore(database, self._words_in), *args, **kwargs))

    @property
    def is_shared(self) -> bool:
        """Whether other processes write at the same time."""
        return self._db.is_shared

    async def aclose(self) -> None:
        """Let go of the database; closing twice is harmless."""
        await self._db.aclose()

    def insert(self, owner: str, observations: Iterable[tuple[Observation, NDArray[np.float32]]]) -> list[str]:
        """Write those that are new, and return their ids; an id that is known stays as it is (OF-15)."""
        inserted = []
        with self._db.transaction(owner):
            for one, vector in observations:
                row = OBSERVATIONS.values(one, owner=owner, vector=np.asarray(vector, np.float32).tobytes())
                written = OBSERVATIONS.add(self._db, row, "row")
                if written:
                    self._words.put(owner, written["row"], (one.title, one.narrative, "\n".join(one.facts), one.task))
                    self._db.execute(_TO_INDEX, (owner, one.id))
                    inserted.append(one.id)
        return inserted

    def get(self, owner: str, ids: Sequence[str]) -> list[Observation]:
        """Return the observations that exist, in the order of `ids`."""
        return OBSERVATIONS.get(self._db, owner, ids)

    def tasks(self, owner: str, ids: Sequence[str]) -> dict[str, str]:
        """Return the task of each observation that exists, without case and spacing."""
        rows = OBSERVATIONS.rows(self._db, owner, among=("id", ids), columns="id, task")
        return {row["id"]: normal_task(row["task"]) for row in rows if isinstance(row["task"], str)}

    def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors, so that no text is embedded twice; one that is damaged is left out."""
        rows = OBSERVATIONS.rows(self._db, owner, among=("id", ids), columns="id, vector")
        return {row["id"]: vector for row in rows if (vector := unit_vector(row["vector"])) is not None}

    def dimension(self) -> int | None:
        """Return how many numbers the stored vectors have; None before the first."""
        # Most common, for one odd row that an earlier version let in must not decide for the others.
        found = self._db.execute(
            "SELECT length(vector) AS bytes FROM (SELECT vector FROM observations LIMIT 100) AS rows "
            "GROUP BY bytes ORDER BY count(*) DESC LIMIT 1"
        ).fetchone()
        return None if found is None else int(found["bytes"]) // 4

    def ids_by_words(self, owner: str, keywords: Sequence[Keyword], tasks: int) -> list[str]:
        """Return the ids of rows that hold a keyword, those of the rarest words first, until they are of `tasks` tasks.

        How much a word tells follows from the rows of this owner alone, so that no other owner changes what is found.
        """
        rows = self.count(owner)
        held = [self._words.holding(owner, keyword) for keyword in keywords]
        telling = [np.full(len(one), math.log(1 + (rows - len(one) + 0.5) / (len(one) + 0.5))) for one in held]
        if not telling:
            return []
        distinct, places = np.unique(np.concatenate(held), return_inverse=True)
        weights = np.bincount(places, np.concatenate(telling), len(distinct))
        best = distinct[np.lexsort((-distinct, -weights))].tolist()
        found: list[str] = []
        known: set[str] = set()
        for start in range(0, len(best), tasks):
            if len(known) >= tasks:
                break
            part = best[start : start + tasks]
            # As a join in this order: SQLite would read all of an owner's rows for a list of numbers.
            sql = (
                f"WITH wanted (number) AS (VALUES {', '.join(['(?)'] * len(part))}) SELECT row, id, task "  # noqa: S608
                "FROM wanted CROSS JOIN observations WHERE row = number AND owner = ?"
            )
            named = {one["row"]: one for one in self._db.rows(sql, (*part, owner))}
            for one in (named[row] for row in part if row in named and isinstance(named[row]["task"], str)):
                found.append(one["id"])
                known.add(normal_task(one["task"]))
        return found

    def recent(self, owner: str, limit: int | None) -> list[Observation]:
        """Return observations, newest first."""
        sql = f"SELECT {OBSERVATIONS.read_columns} FROM observations WHERE owner = ? ORDER BY timestamp DESC, row DESC"  # noqa: S608
        rows = chain.from_iterable(self._db.batches(sql, (owner,)))
        return list(islice(OBSERVATIONS.whole(self._db, rows), limit))

    def rate(self, owner: str, identifier: str, rating: float) -> bool:
        """Set a rating; no index is touched, for ratings live here alone."""
        cursor = self._db.execute(
            "UPDATE observations SET rating = ? WHERE owner = ? AND id = ?", (rating, owner, identifier)
        )
        return cursor.rowcount == 1

    def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete observations; return the ids that existed."""
        deleted = []
        with self._db.transaction(owner):
            for identifier in dict.fromkeys(ids):
                row = self._db.execute(
                    "DELETE FROM observations WHERE owner = ? AND id = ? RETURNING row", (owner, identifier)
                ).fetchone()
                if row:
                    self._words.drop(owner, row["row"])
                    self._db.execute(_TO_INDEX, (owner, identifier))
                    deleted.append(identifier)
        return deleted

    def ids(self, owner: str) -> list[str]:
        """Return every id of an owner."""
        return [row[0] for row in OBSERVATIONS.rows(self._db, owner, "ORDER BY id", columns="id")]

    def count(self, owner: str) -> int:
        """Count an owner's observations."""
        return OBSERVATIONS.count(self._db, owner)

    def owners(self) -> list[str]:
        """Return everybody who has observations."""
        return [row[0] for row in self._db.execute("SELECT DISTINCT owner FROM observations ORDER BY owner")]

    def pending(self) -> list[PendingIndexing]:
        """Return what the vector index does not know yet, oldest first."""
        return [
            PendingIndexing(*row)
            for row in self._db.execute("SELECT sequence, owner, id FROM outbox ORDER BY sequence")
        ]

    def strike_off(self, pending: Sequence[PendingIndexing]) -> None:
        """Strike off what the vector index has taken."""
        with self._db.transaction():
            done = [(entry.owner, entry.sequence) for entry in pending]
            self._db.executemany("DELETE FROM outbox WHERE owner = ? AND sequence = ?", done)


class WordIndex(Protocol):
    """Which rows hold a keyword, written in the transaction of the row; of one owner alone, whatever others write."""

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


def _tag(owner: str) -> str:
    return "o" + hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _mark(owner: str, word: str) -> int:
    digest = hashlib.blake2b(f"{owner}\n{word}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def observations_in_file(file: Path, *, model: str) -> ObservationsStore:
    """Open the store in a file of SQLite, which is made or taken over from an earlier version."""
    about = {"schema": SCHEMA_VERSION, "model": model}
    database = Database(file, schema=_SCHEMA, about=about, migrations=_MIGRATIONS)
    _index_all(database, SqliteWords(database))
    _seal_all(database)
    return ObservationsStore(database, SqliteWords)


def _index_all(database: Database, words: WordIndex) -> None:
    # A file of schema 1 has lost its words. As bytes, for a row that is damaged must not keep it from being opened.
    if database.execute("SELECT EXISTS (SELECT 1 FROM words)").fetchone()[0]:
        return
    columns = ", ".join(f"CAST({column} AS BLOB)" for column in ("owner", "title", "narrative", "facts", "task"))
    with database.transaction():
        rows = database.execute(f"SELECT row, {columns} FROM observations").fetchall()  # noqa: S608  (no input)
        for row, *texts in rows:
            owner, title, narrative, facts, task = ((one or b"").decode("utf-8", "replace") for one in texts)
            words.put(owner, row, (title, narrative, text_of_facts(facts), task))


def _seal_all(database: Database) -> None:
    """Give the rows of an earlier schema their checksums; one that is damaged already gets none."""
    sealed = ", ".join(OBSERVATIONS.sealed)
    rows = database.rows(f"SELECT row, {sealed} FROM observations WHERE checksum IS NULL")  # noqa: S608  (our own names)
    seals = [(checksum(list(row)[1:]), row["row"]) for row in rows if not any(isinstance(one, bytes) for one in row)]
    if seals:
        with database.transaction():
            database.executemany("UPDATE observations SET checksum = ? WHERE row = ?", seals)
