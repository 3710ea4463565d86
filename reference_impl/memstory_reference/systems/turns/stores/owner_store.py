"""One owner's turns: a SQLite file with the texts and their words, and a mapped matrix of their vectors; blocking.

SQLite is the truth. The number of a turn is its row in the matrix; numbers are given in the order of adding.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.database_store import Database, parts
from memstory_reference.storage.mapped_matrix import MappedMatrix
from memstory_reference.storage.vector_matrix import cosines, products
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import Candidate, Pool
from memstory_reference.systems.turns.stores.neighbours import Neighbours
from memstory_reference.systems.turns.stores.store import Written
from memstory_reference.systems.turns.stores.turn_rows import (
    CANDIDATE_COLUMNS,
    COLUMNS,
    WRITTEN_COLUMNS,
    candidate_of,
    turn_of,
    values_of,
)
from memstory_reference.systems.turns.turn import Turn

SCHEMA_VERSION = "1"
SUFFIX = ".sqlite3"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT UNIQUE,
    kind TEXT NOT NULL,
    speaker TEXT,
    session TEXT,
    said_at TEXT,
    noted_at TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    stems TEXT NOT NULL,
    words INTEGER NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS by_session ON turns (session, number);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
    stems, content = 'turns', content_rowid = 'number', tokenize = 'unicode61'
);
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab(words, 'row');
"""
_MARKS = ", ".join("?" * (len(WRITTEN_COLUMNS) + 1))
_INSERT = f"INSERT INTO turns ({', '.join(WRITTEN_COLUMNS)}, vector) VALUES ({_MARKS})"  # noqa: S608
_UPDATE = f"UPDATE turns SET ({', '.join(WRITTEN_COLUMNS)}, vector) = ({_MARKS}) WHERE number = ?"  # noqa: S608
_COMMON_SHARE = 0.1
"""Words in more turns than this share are not looked for where two rarer ones remain: they cost most and tell least."""

_FEW_TURNS = 10_000
"""Up to so many turns every word is looked for."""


class OwnerStore:
    """The open file of one owner; one thread at a time."""

    def __init__(self, file: Path, *, model: str) -> None:
        self._db = Database(file, schema=_SCHEMA, about={"schema": SCHEMA_VERSION, "model": model})
        self._matrix_file = file.with_suffix(".f32")
        self._matrix: MappedMatrix | None = None
        try:
            self._load()
        except BaseException:
            self._db.close()
            raise

    def put(self, written: Sequence[Written]) -> None:
        """Write turns, all or none; the last of the same id counts."""
        if not written:
            return
        latest = {one.turn.id: one for one in written}
        known = self._numbers(list(latest))
        matrix = self._matrix_for(len(written[0].vector))
        matrix.reserve(self._next + len(latest))
        matrix.wipe(list(known.values()))
        numbers: dict[str, int] = {}
        try:
            with self._db.transaction():
                for identifier, one in latest.items():
                    numbers[identifier] = self._write(one, known.get(identifier))
        except BaseException:
            self._repair()  # what was wiped holds still
            raise
        matrix.put(list(numbers.values()), np.stack([one.vector for one in latest.values()]).astype(np.float32))
        if known:
            self._note_all()
            self._db.forget_log()  # the text from before an update is nowhere any more
        else:
            for identifier, one in latest.items():
                self._note(numbers[identifier], one.turn.kind, one.turn.session, one.turn.speaker, len(one.stems))

    def get(self, ids: Sequence[str]) -> list[Turn]:
        """Return the turns that exist, in the order of `ids`."""
        found: dict[str, Turn] = {}
        for marks, part in parts(ids):
            rows = self._db.execute(f"SELECT {COLUMNS} FROM turns WHERE id IN ({marks})", part)  # noqa: S608
            found |= {row["id"]: turn_of(row) for row in rows}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def by_key(self, key: str) -> Turn | None:
        """Return the turn of a key."""
        row = self._db.execute(f"SELECT {COLUMNS} FROM turns WHERE key = ?", (key,)).fetchone()  # noqa: S608
        return None if row is None else turn_of(row)

    def listed(self, conditions: Conditions, limit: int | None) -> list[Turn]:
        """Return the last `limit` turns that meet the conditions, in the order of adding."""
        found = [turn for _, turn in self._meeting(conditions)]
        return found if limit is None else found[max(len(found) - limit, 0) :]

    def pool(self, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions) -> Pool:
        """Return the candidates for a question."""
        holding = self._holding(stems)
        allowed = self._alive[: self._next]
        if not conditions.is_open:
            allowed = np.zeros_like(allowed)
            allowed[[number for number, _ in self._meeting(conditions)]] = True
        if self._matrix is not None:
            self._matrix.check(len(vector))
        if not allowed.any() or self._matrix is None:
            return Pool(candidates=(), holding=holding, turns=self.count(), mean_words=self._mean_words)
        core = set(self._nearest(vector, size, allowed)) | set(self._worded(stems, holding, size, allowed))
        beside = {number for one in core for number in self._beside.of(one) if number is not None and allowed[number]}
        numbers = sorted(core | beside)
        likeness = dict(zip(numbers, cosines(self._matrix.rows[numbers], vector), strict=True))
        candidates = [self._candidate(row, float(likeness[row["number"]])) for row in self._rows(numbers)]
        return Pool(candidates=candidates, holding=holding, turns=self.count(), mean_words=self._mean_words)

    def speakers(self) -> frozenset[str]:
        """Return who ever spoke."""
        return frozenset(self._speakers)

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete turns; return the ids that existed."""
        numbers = self._numbers(ids)
        if numbers:
            if self._matrix is not None:
                self._matrix.wipe(list(numbers.values()))
            try:
                with self._db.transaction():
                    for number in numbers.values():
                        self._unindex(number)
                        self._db.execute("DELETE FROM turns WHERE number = ?", (number,))
                    # Of a deleted word no page of the index may keep a copy.
                    self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
            except BaseException:
                self._repair()
                raise
            self._db.forget_log()
            self._note_all()
        return [one for one in dict.fromkeys(ids) if one in numbers]

    def of_session(self, session: str) -> list[str]:
        """Return the ids of the turns of a session."""
        return [row[0] for row in self._db.execute("SELECT id FROM turns WHERE session = ?", (session,))]

    def count(self) -> int:
        """Count the turns."""
        return int(self._alive.sum())

    def close(self) -> None:
        """Close both files; closing twice is harmless."""
        if self._matrix is not None:
            self._matrix.close()
        self._db.close()

    def _write(self, one: Written, number: int | None) -> int:
        turn = one.turn
        values = (*values_of(one), np.asarray(one.vector, np.float32).tobytes())
        if turn.key is not None:
            self._db.execute("UPDATE turns SET key = NULL WHERE key = ? AND id != ?", (turn.key, turn.id))
        if number is None:
            number = self._db.execute(_INSERT, values).lastrowid or 0
        else:
            self._unindex(number)
            self._db.execute(_UPDATE, (*values, number))
        self._db.execute("INSERT INTO words (rowid, stems) VALUES (?, ?)", (number, " ".join(one.stems)))
        return number

    def _unindex(self, number: int) -> None:
        # The index holds no texts: it is told what it has to take out.
        sql = "INSERT INTO words (words, rowid, stems) SELECT 'delete', number, stems FROM turns WHERE number = ?"
        self._db.execute(sql, (number,))

    def _nearest(self, vector: NDArray[np.float32], size: int, allowed: NDArray[np.bool_]) -> list[int]:
        assert self._matrix is not None  # noqa: S101  (for the type checker; `pool` has seen to it)
        rough = products(self._matrix.rows[: len(allowed)], vector)
        rough[~allowed] = -np.inf
        count = min(size, int(allowed.sum()))
        return [int(one) for one in np.argpartition(-rough, count - 1)[:count]]

    def _worded(
        self, stems: Sequence[str], holding: Mapping[str, int], size: int, allowed: NDArray[np.bool_]
    ) -> Iterable[int]:
        wanted = self._telling([stem for stem in stems if holding.get(stem)], holding)
        if not wanted:
            return []
        expression = " OR ".join(f'"{stem}"' for stem in wanted)
        sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        all_are_allowed = int(allowed.sum()) == self.count()
        rows = self._db.execute(sql, (expression, size if all_are_allowed else -1))
        found = (row[0] for row in rows if allowed[row[0]])
        return [number for number, _ in zip(found, range(size), strict=False)]

    def _telling(self, stems: Sequence[str], holding: Mapping[str, int]) -> Sequence[str]:
        if self.count() <= _FEW_TURNS:
            return stems
        rare = [stem for stem in stems if holding[stem] <= _COMMON_SHARE * self.count()]
        return rare if len(rare) > 1 else stems

    def _holding(self, stems: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for marks, part in parts(stems):
            rows = self._db.execute(f"SELECT term, doc FROM vocabulary WHERE term IN ({marks})", part)  # noqa: S608
            found |= {row[0]: row[1] for row in rows}
        return found

    def _candidate(self, row: sqlite3.Row, cosine: float) -> Candidate:
        assert self._matrix is not None  # noqa: S101  (for the type checker; `pool` has seen to it)
        number = row["number"]
        return candidate_of(row, cosine, self._matrix.rows[number], self._beside.of(number))

    def _rows(self, numbers: Sequence[int]) -> Iterable[sqlite3.Row]:
        for marks, part in parts(numbers):
            yield from self._db.execute(f"SELECT {CANDIDATE_COLUMNS} FROM turns WHERE number IN ({marks})", part)  # noqa: S608

    def _meeting(self, conditions: Conditions) -> Iterable[tuple[int, Turn]]:
        sql, given = f"SELECT {COLUMNS} FROM turns", list[object]()  # noqa: S608
        if conditions.session is not None:
            sql, given = f"{sql} WHERE session = ?", [conditions.session]
        for row in self._db.execute(f"{sql} ORDER BY number", given):
            turn = turn_of(row)
            if conditions.admits(turn):
                yield row["number"], turn

    def _numbers(self, ids: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for marks, part in parts(ids):
            rows = self._db.execute(f"SELECT id, number FROM turns WHERE id IN ({marks})", part)  # noqa: S608
            found |= {row[0]: row[1] for row in rows}
        return found

    def _matrix_for(self, dimension: int) -> MappedMatrix:
        """Return the matrix; StoreConflictError if it holds vectors of another dimension."""
        if self._matrix is not None:
            self._matrix.check(dimension)
        if self._matrix is None:
            self._matrix = MappedMatrix(self._matrix_file, dimension)
        return self._matrix

    def _load(self) -> None:
        self._note_all()
        row = self._db.execute("SELECT length(vector) FROM turns LIMIT 1").fetchone()
        if row is not None:
            self._matrix_for(row[0] // 4).reserve(self._next)
            self._repair()

    def _repair(self) -> None:
        """Copy from SQLite what the matrix lacks: a process may have died between the two."""
        if self._matrix is None:
            return
        missing = [int(one) for one in self._matrix.unwritten(np.flatnonzero(self._alive))]
        for marks, part in parts(missing):
            sql = f"SELECT number, vector FROM turns WHERE number IN ({marks})"  # noqa: S608
            for number, blob in self._db.execute(sql, part):
                self._matrix.put([number], np.frombuffer(blob, np.float32))

    def _note_all(self) -> None:
        self._alive = np.zeros(0, np.bool_)
        self._beside = Neighbours()
        self._speakers: dict[str, int] = {}
        self._all_words = 0
        (last,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'turns'").fetchone()
        self._next = int(last) + 1
        for row in self._db.execute("SELECT number, kind, session, speaker, words FROM turns ORDER BY number"):
            self._note(*row)

    def _note(self, number: int, kind: str, session: str | None, speaker: str | None, words: int) -> None:
        if number >= len(self._alive):
            grown = np.zeros(max(2 * len(self._alive), number + 1, 64), np.bool_)
            grown[: len(self._alive)] = self._alive
            self._alive = grown
        self._alive[number] = True
        self._next = max(self._next, number + 1)
        self._all_words += words
        if speaker is not None:
            self._speakers[speaker] = self._speakers.get(speaker, 0) + 1
            self._beside.append(number, session)

    @property
    def _mean_words(self) -> float:
        return self._all_words / max(self.count(), 1)
