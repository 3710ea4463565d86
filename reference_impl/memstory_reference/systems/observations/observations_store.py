"""Observations in SQLite: the truth, its full-text index, and the outbox from which the vector index is kept.

Every write puts the row, its words and an outbox entry into one transaction, so a process killed between the two
indexes leaves work to do and never a half-known observation (OF-10, OF-16).
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.checksum import checksum
from memstory_reference.storage.database_store import Database, batches_of_values
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable, text_in
from memstory_reference.storage.vector_matrix import normalized_or_none
from memstory_reference.systems.observations.observation import Observation, normal_task
from memstory_reference.text.keywords import Keyword, fts_query, index_text

SCHEMA_VERSION = "3"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS observations (
    row INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    narrative TEXT NOT NULL,
    facts TEXT NOT NULL,
    task TEXT NOT NULL,
    task_type TEXT NOT NULL,
    final_score REAL,
    rating REAL,
    timestamp TEXT NOT NULL,
    sources TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum TEXT,
    UNIQUE (owner, id)
);
CREATE INDEX IF NOT EXISTS without_checksum ON observations (row) WHERE checksum IS NULL;
CREATE INDEX IF NOT EXISTS by_time ON observations (owner, timestamp DESC, row DESC);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(owner_tag, title, narrative, facts, task, tokenize = 'ascii');
CREATE TABLE IF NOT EXISTS outbox (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, id TEXT NOT NULL
);
"""
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
SEALED = ("owner", "id", "title", "narrative", "facts", "task", "task_type", "final_score", "timestamp", "sources")
"""The columns that a checksum is of: all but the vector, and the rating, which changes."""

_INSERT = """
INSERT OR IGNORE INTO observations
    (owner, id, title, narrative, facts, task, task_type, final_score, timestamp, sources, rating, vector, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingIndexing:
    """An observation whose place in the vector index is to be brought up to date."""

    sequence: int
    owner: str
    id: str


class ObservationsStore:
    """Blocking; one connection, used by one thread at a time."""

    def __init__(self, file: Path, *, model: str) -> None:
        self._db = Database(
            file, schema=_SCHEMA, about={"schema": SCHEMA_VERSION, "model": model}, migrations=_MIGRATIONS
        )
        self.lane = self._db.lane
        self._index_all()
        self._seal_all()

    async def aclose(self) -> None:
        """Close the file; closing twice is harmless."""
        await self._db.aclose()

    def insert(self, owner: str, observations: Iterable[tuple[Observation, NDArray[np.float32]]]) -> list[str]:
        """Write those that are new, and return their ids; an id that is known stays as it is (OF-15)."""
        inserted = []
        with self._db.transaction():
            for observation, vector in observations:
                sealed = (owner, *_row_of(observation))
                blob = np.asarray(vector, np.float32).tobytes()
                cursor = self._db.execute(_INSERT, (*sealed, observation.rating, blob, checksum(sealed)))
                if cursor.rowcount:
                    self._index(owner, observation, cursor.lastrowid)
                    inserted.append(observation.id)
        return inserted

    def get(self, owner: str, ids: Sequence[str]) -> list[Observation]:
        """Return the observations that exist, in the order of `ids`."""
        found = {one.id: one for one in self._sound(self._rows("*", owner, ids))}
        return [found[identifier] for identifier in dict.fromkeys(ids) if identifier in found]

    def tasks(self, owner: str, ids: Sequence[str]) -> dict[str, str]:
        """Return the task of each observation that exists, without case and spacing."""
        rows = self._rows("id, task", owner, ids)
        return {row["id"]: normal_task(row["task"]) for row in rows if isinstance(row["task"], str)}

    def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors, so that no text is embedded twice; one that is damaged is left out."""
        found = {row["id"]: _vector_of(row) for row in self._rows("id, vector", owner, ids)}
        return {identifier: vector for identifier, vector in found.items() if vector is not None}

    def dimension(self) -> int | None:
        """Return how many numbers the stored vectors have; None before the first."""
        # Most common, for one odd row that an earlier version let in must not decide for the others.
        found = self._db.execute(
            "SELECT length(vector) AS bytes FROM (SELECT vector FROM observations LIMIT 100) "
            "GROUP BY bytes ORDER BY count(*) DESC LIMIT 1"
        ).fetchone()
        return None if found is None else int(found["bytes"]) // 4

    def ids_by_words(self, owner: str, keywords: Sequence[Keyword], tasks: int) -> list[str]:
        """Return the ids of rows that hold a keyword, those of the rarest words first, until they are of `tasks` tasks.

        How much a word tells follows from the rows of this owner alone, so that no other owner changes what is found.
        """
        (rows,) = self._db.execute("SELECT count(*) FROM observations WHERE owner = ?", (owner,)).fetchone()
        held = [self._holding(owner, keyword) for keyword in keywords]
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
            for row in best[start : start + tasks]:
                for one in self._db.rows("SELECT id, task FROM observations WHERE row = ?", (row,)):
                    if not isinstance(one["task"], str):
                        continue
                    found.append(one["id"])
                    known.add(normal_task(one["task"]))
        return found

    def recent(self, owner: str, limit: int | None) -> list[Observation]:
        """Return observations, newest first."""
        sql = "SELECT * FROM observations WHERE owner = ? ORDER BY timestamp DESC, row DESC"
        return list(islice(self._sound(row for part in self._db.batches(sql, (owner,)) for row in part), limit))

    def rate(self, owner: str, identifier: str, rating: float) -> bool:
        """Set a rating; no index is touched, for ratings live here alone."""
        cursor = self._db.execute(
            "UPDATE observations SET rating = ? WHERE owner = ? AND id = ?", (rating, owner, identifier)
        )
        return cursor.rowcount == 1

    def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete observations; return the ids that existed."""
        deleted = []
        with self._db.transaction():
            for identifier in dict.fromkeys(ids):
                row = self._db.execute(
                    "DELETE FROM observations WHERE owner = ? AND id = ? RETURNING row", (owner, identifier)
                ).fetchone()
                if row:
                    self._db.execute("DELETE FROM words WHERE rowid = ?", (row["row"],))
                    self._db.execute("INSERT INTO outbox (owner, id) VALUES (?, ?)", (owner, identifier))
                    deleted.append(identifier)
        return deleted

    def ids(self, owner: str) -> list[str]:
        """Return every id of an owner."""
        return [row[0] for row in self._db.execute("SELECT id FROM observations WHERE owner = ? ORDER BY id", (owner,))]

    def count(self, owner: str) -> int:
        """Count an owner's observations."""
        return int(self._db.execute("SELECT count(*) FROM observations WHERE owner = ?", (owner,)).fetchone()[0])

    def owners(self) -> list[str]:
        """Return everybody who has observations."""
        return [row[0] for row in self._db.execute("SELECT DISTINCT owner FROM observations ORDER BY owner")]

    def pending(self) -> list[PendingIndexing]:
        """Return what the vector index does not know yet, oldest first."""
        rows = self._db.execute("SELECT sequence, owner, id FROM outbox ORDER BY sequence")
        return [PendingIndexing(sequence=sequence, owner=owner, id=identifier) for sequence, owner, identifier in rows]

    def strike_off(self, pending: Sequence[PendingIndexing]) -> None:
        """Strike off what the vector index has taken."""
        with self._db.transaction():
            self._db.executemany("DELETE FROM outbox WHERE sequence = ?", [(entry.sequence,) for entry in pending])

    def _holding(self, owner: str, keyword: Keyword) -> NDArray[np.int64]:
        # The owner is part of MATCH: a join would first look at everybody's rows. As one text, for a common word
        # is in thousands of rows.
        expression = f'owner_tag : "{_tag(owner)}" AND {{title narrative facts task}} : ({fts_query([keyword])})'
        (listed,) = self._db.execute(
            "SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (expression,)
        ).fetchone()
        return np.fromstring(listed or "", np.int64, sep=",")

    def _sound(self, rows: Iterable[sqlite3.Row]) -> Iterator[Observation]:
        """Yield what can be read; a row that is damaged is left out, and logged once."""
        for row in rows:
            try:
                yield _observation_of(row)
            except (TypeError, ValueError) as problem:
                advice = "Forget it, or restore a backup"
                self._db.leave_out(f"observation {row['id']!r}", problem, advice, row["row"])

    def _rows(self, columns: str, owner: str, ids: Sequence[str]) -> Iterator[sqlite3.Row]:
        for marks, part in batches_of_values(ids):
            sql = f"SELECT {columns} FROM observations WHERE owner = ? AND id IN ({marks})"  # noqa: S608  (no input)
            yield from self._db.rows(sql, (owner, *part))

    def _index_all(self) -> None:
        # A file of schema 1 has lost its words. As bytes, for a row that is damaged must not keep it from being opened.
        if self._db.execute("SELECT EXISTS (SELECT 1 FROM words)").fetchone()[0]:
            return
        columns = ", ".join(f"CAST({column} AS BLOB)" for column in ("owner", "title", "narrative", "facts", "task"))
        with self._db.transaction():
            rows = self._db.execute(f"SELECT row, {columns} FROM observations").fetchall()  # noqa: S608  (no input)
            for row, *texts in rows:
                owner, title, narrative, facts, task = ((one or b"").decode("utf-8", "replace") for one in texts)
                self._index_words(row, owner, (title, narrative, _text_of_facts(facts), task))

    def _seal_all(self) -> None:
        """Give the rows of an earlier schema their checksums; one that is damaged already gets none."""
        rows = self._db.rows(f"SELECT row, {', '.join(SEALED)} FROM observations WHERE checksum IS NULL")  # noqa: S608
        seals = [(_checksum(row), row["row"]) for row in rows if not any(isinstance(one, bytes) for one in row)]
        if seals:
            with self._db.transaction():
                self._db.executemany("UPDATE observations SET checksum = ? WHERE row = ?", seals)

    def _index(self, owner: str, observation: Observation, row: int | None) -> None:
        facts = "\n".join(observation.facts)
        self._index_words(row, owner, (observation.title, observation.narrative, facts, observation.task))
        self._db.execute("INSERT INTO outbox (owner, id) VALUES (?, ?)", (owner, observation.id))

    def _index_words(self, row: int | None, owner: str, texts: Iterable[str]) -> None:
        self._db.execute(
            "INSERT INTO words (rowid, owner_tag, title, narrative, facts, task) VALUES (?, ?, ?, ?, ?, ?)",
            (row, _tag(owner), *map(index_text, texts)),
        )


def _tag(owner: str) -> str:
    return "o" + hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _checksum(row: sqlite3.Row) -> str:
    return checksum([row[name] for name in SEALED])


def _row_of(observation: Observation) -> tuple[str | float | None, ...]:
    """Return the values of `SEALED` but for the owner."""
    return (
        observation.id,
        observation.title,
        observation.narrative,
        json.dumps(list(observation.facts), ensure_ascii=False),
        observation.task,
        observation.task_type,
        observation.final_score,
        observation.timestamp.isoformat(timespec="microseconds"),
        json.dumps(list(observation.sources), ensure_ascii=False),
    )


def _vector_of(row: sqlite3.Row) -> NDArray[np.float32] | None:
    blob = row["vector"]
    return (
        normalized_or_none(np.frombuffer(blob, np.float32)) if isinstance(blob, bytes) and len(blob) % 4 == 0 else None
    )


def _observation_of(row: sqlite3.Row) -> Observation:
    if row["checksum"] not in (None, _checksum(row)):
        raise ValueError("its checksum does not fit")
    if not all(isinstance(row[name], str) for name in ("id", "title", "narrative", "task", "task_type")):
        raise TypeError("a text is none")
    if not all(isinstance(row[name], (int, float, type(None))) for name in ("final_score", "rating")):
        raise TypeError("a number is none")
    return Observation(
        id=row["id"],
        title=row["title"],
        narrative=row["narrative"],
        facts=_texts_of(row["facts"]),
        task=row["task"],
        task_type=row["task_type"],
        final_score=row["final_score"],
        rating=row["rating"],
        timestamp=datetime.fromisoformat(row["timestamp"]),
        sources=_texts_of(row["sources"]),
    )


def _text_of_facts(facts: str) -> str:
    try:
        return "\n".join(_texts_of(facts))
    except ValueError:
        return facts


def _texts_of(text: str) -> tuple[str, ...]:
    listed = json.loads(text)
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ValueError(f"expected a list of texts, found {text!r:.40}")
    return tuple(listed)
