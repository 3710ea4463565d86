"""One owner's turns: rows of a database, and what is ranked of them in memory; blocking.

The database is the truth. A write notes which turns it changes, and what is in memory follows when it is next asked:
their rows are read again. The number of a turn is its row in the matrix of vectors; numbers are given in the order of
adding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import lt
from pathlib import Path
from statistics import mode

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.sql_database import AT_ONCE, SqlDatabase, SqlRow, batches_of_values
from memstory_reference.storage.vector_matrix import MappedMatrix, are_unit
from memstory_reference.systems.turns.ranking import Places, Pool
from memstory_reference.systems.turns.stores.index import Features, Index, admitted_numbers, pool_of
from memstory_reference.systems.turns.stores.tables_store import (
    ALL_COLUMNS,
    READ_COLUMNS,
    SEALED,
    VERSION,
    WRITTEN_COLUMNS,
    Tables,
    row_of,
    seal_of,
    turn_of,
)
from memstory_reference.systems.turns.turn import Conditions, Turn

HIGHEST = 2**32 - 1
"""No number is higher: it would be no turn's, and the memory for all below it is not to be had."""

_GAP = 8
"""Vectors whose numbers are no further apart are read together, with those between them."""

_NAMES = slice(3, 5)
"""Session and speaker in a row of `_LOADED`."""

_LOADED = "number, moment, kind, session, speaker, signs, length(stems) / 4, stems"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTurn:
    """A turn with what it is found by: its unit vector and the stems of its text, in their order."""

    turn: Turn
    vector: NDArray[np.float32]
    stems: Sequence[str]


def checked_last(last: object, place: str) -> int:
    """Return the last number that was given; UnavailableError for one that no turn can have."""
    if not (isinstance(last, int) and 0 <= last <= HIGHEST):
        raise UnavailableError(f"{place} is damaged: no turn has the number {last!r:.40}. Restore a backup")
    return last


def latest_of(written: Sequence[IndexedTurn]) -> list[IndexedTurn]:
    """Return what stands when all were written one after the other: each id once, and each key."""
    latest = {one.turn.id: one for one in written}
    holder = {one.turn.key: one.turn.id for one in written}
    return [
        one
        if holder[one.turn.key] == one.turn.id or one.turn.key is None
        else replace(one, turn=replace(one.turn, key=None))
        for one in latest.values()
    ]


class OwnerTurns(ABC):
    """One owner's turns by one database; what is in memory, its index, is used by one thread at a time."""

    tables: Tables
    key: Sequence[object] = ()
    """The values of `tables.keys`."""
    change: Sequence[object] = ()
    """The values of `tables.changed`."""
    matrix_file: Path | None = None
    lost = 0
    """How many turns the database itself has lost."""

    def __init__(self, name: str, index: Index) -> None:
        self.name, self.index = name, index

    @property
    @abstractmethod
    def writing(self) -> SqlDatabase:
        """The database, to write."""

    @property
    def reading(self) -> SqlDatabase:
        """The database, to read."""
        return self.writing

    @abstractmethod
    def refresh(self) -> None:
        """Bring what is in memory to what the database has."""

    @abstractmethod
    def is_number(self, number: int) -> bool:
        """Say whether a turn may have this number."""

    @abstractmethod
    def begin(self) -> int:
        """Begin to write, within a transaction; return the last number that was given."""

    @abstractmethod
    def change_rows(self, numbers: Sequence[int], replaced: Sequence[int], more: int, dimension: int) -> None:
        """Note which turns are about to be written, of which some are `replaced`, so that there are so many `more`."""

    def put(self, written: Sequence[IndexedTurn]) -> Sequence[int]:
        """Write turns of different ids, all or none; return their numbers."""
        rows = {one.turn.id: row_of(one.turn, one.stems) for one in written}
        columns, within = (*ALL_COLUMNS, *self.tables.changed), self.tables.within
        marks = ", ".join("?" * len(columns))
        with self.writing.transaction(self.name):
            last = self.begin()
            self._check_dimension(len(written[0].vector))
            held = self._numbers("id", list(rows))
            known = {one: number for one, number in held.items() if self.is_number(number)}
            fresh = count(last + 1)
            numbers = {one: known.get(one) or next(fresh) for one in rows}
            replaced = list(known.values())
            self.change_rows(list(numbers.values()), replaced, len(rows) - len(known), len(written[0].vector))
            keyed = [(*self.key, one.turn.key, one.turn.id) for one in written if one.turn.key is not None]
            self.writing.executemany(f"UPDATE turns SET key = NULL WHERE {within}key = ? AND id <> ?", keyed)  # noqa: S608
            self.writing.executemany(
                f"UPDATE turns SET ({', '.join(columns)}) = ({marks}) WHERE {within}number = ?",  # noqa: S608
                [(*rows[one], *self.change, *self.key, number) for one, number in known.items()],
            )
            self.writing.insert(
                "turns",
                f"{self.tables.keys}number, {', '.join(columns)}",
                [(*self.key, numbers[one], *row, *self.change) for one, row in rows.items() if one not in known],
            )
            self.writing.executemany(
                f"DELETE FROM vectors WHERE {within}number = ?",  # noqa: S608
                [(*self.key, one) for one in replaced],
            )
            self.writing.execute(f"DELETE FROM vectors WHERE {within}number > ?", (*self.key, last))  # noqa: S608
            self.writing.insert(
                "vectors",
                f"{self.tables.keys}number, vector",
                [(*self.key, numbers[one.turn.id], one.vector.astype(np.float32).tobytes()) for one in written],
            )
        if known:
            self.writing.forget_log()  # the text from before an update is nowhere any more
        return list(numbers.values())

    def get(self, ids: Sequence[str]) -> list[Turn]:
        """Return the turns that exist, in the order of `ids`."""
        found = {turn.id: turn for turn in self._read("id", ids).values()}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def by_numbers(self, numbers: Sequence[int]) -> dict[int, Turn]:
        """Return the turns that exist, by number."""
        found = self._read("number", numbers)
        for number in self.index.columns.alive([one for one in numbers if one not in found]):
            if self.reading.is_shared:  # another process has deleted it
                self._drop(number)
            else:
                self._leave_out(number, "it is not where it belongs")
        return found

    def by_keys(self, keys: Sequence[str]) -> dict[str, Turn]:
        """Return the turns that exist, by their keys."""
        return {turn.key: turn for turn in self._read("key", keys).values() if turn.key is not None}

    def list_turns(self, conditions: Conditions, limit: int | None) -> list[Turn]:
        """Return the last `limit` turns that meet the conditions, in the order of adding."""
        self.refresh()
        while True:
            numbers = self._admit(conditions)
            last = numbers if limit is None else numbers[max(len(numbers) - limit, 0) :]
            turns = self.by_numbers(last.tolist())
            if len(turns) == len(last):  # what could not be read is not admitted any more
                return list(turns.values())

    def pool(self, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions) -> Pool:
        """Return the candidates for a question."""
        self.refresh()
        self._fill()
        if self.index.matrix is not None:
            self._check_dimension(len(vector))
        return pool_of(self.index, vector, stems, size, None if conditions.is_open else self._admit(conditions))

    def speakers(self) -> frozenset[str]:
        """Return who speaks."""
        self.refresh()
        return frozenset(self.index.columns.speakers)

    def delete(self, column: str, values: Sequence[str]) -> list[str]:
        """Delete the turns that have one of the values; return the ids that existed."""
        if not self._numbers(column, values):
            return []
        with self.writing.transaction(self.name):
            self.begin()
            numbers = self._numbers(column, values)
            gone = list(numbers.values())
            self.change_rows(gone, gone, -len(gone), 0)
            for table in ("turns", "vectors"):
                sql = f"DELETE FROM {table} WHERE {self.tables.within}number = ?"  # noqa: S608
                self.writing.executemany(sql, [(*self.key, one) for one in gone])
        self.writing.forget_log()
        return list(numbers)

    def count(self) -> int:
        """Count the turns."""
        self.refresh()
        return len(self.index)

    def unreadable(self) -> int:
        """Read all turns; return how many cannot be read, with those that the database has lost."""
        self.list_turns(Conditions(), None)
        return len(self.index.unreadable) + self.lost

    def load(self, last: int) -> None:
        """Read of all turns what is ranked."""
        self.index.columns.reserve(last + 1)
        self._read_again()
        sql = f"SELECT {_LOADED} FROM turns WHERE {self._is_loaded} AND number BETWEEN 1 AND ? ORDER BY number"  # noqa: S608
        highest = 0
        # In parts: the memory that Python takes for all rows at once would stay with the process.
        for part in self.reading.batches(sql, (*self.key, last)):
            if rows := _sound(part, highest):
                highest = rows[-1]["number"]
                self._note(rows)

    def follow(self, numbers: Sequence[int]) -> None:
        """Read again of some turns what is ranked."""
        index = self.index
        gone = index.columns.alive(numbers)
        index.unreadable.difference_update(numbers)
        if gone:
            index.postings.discard(gone)
        rows = list[SqlRow]()
        for marks, part in batches_of_values(sorted(numbers)):
            sql = f"SELECT {_LOADED} FROM turns WHERE {self._is_loaded} AND number IN ({marks}) ORDER BY number"  # noqa: S608
            rows += _sound(self.reading.rows(sql, (*self.key, *part)), 0)
        found = {row["number"] for row in rows}
        index.columns.discard([one for one in gone if one not in found])
        if rows:
            self._note(rows)

    def compare(self, turns: int) -> None:
        """Leave out what is in memory alone, or in the database alone, if there are not so many turns."""
        if turns == len(self.index) + len(self.index.unreadable):
            return
        sql = f"SELECT number FROM turns WHERE {self.tables.within}1 = 1"  # noqa: S608
        every = {row[0] for row in self.reading.rows(sql, self.key)}
        alive = set(np.flatnonzero(self.index.columns["alive"]).tolist())
        self.index.unreadable &= every
        for number in alive - every:
            self._drop(number)
        for number in every - alive:
            self._leave_out(number, "what stands in its row is none")

    @property
    def _is_loaded(self) -> str:
        return f"{self.tables.within}kind IN ('turn', 'note') AND {self.tables.is_read}"

    def _note(self, rows: Sequence[SqlRow]) -> None:
        *features, words = zip(*rows, strict=True)
        if self.index.version:
            self.index.columns.put([Features(*one) for one in zip(*features, strict=True)])
        else:
            self.index.columns.load(features)
        numbers = np.repeat(np.array(features[0], np.int64), np.array(features[-1], np.int64))
        self.index.postings.add(numbers, np.frombuffer(b"".join(words), np.uint32))
        self.index.unfilled.append(features[0])

    def _read_again(self) -> None:
        """Read the texts that another version has read, or none, and those of which it is not there any more."""
        columns = ", ".join(READ_COLUMNS)
        update = f"UPDATE turns SET ({columns}) = (?, ?, ?, ?, ?) WHERE {self.tables.within}number = ?"  # noqa: S608
        sql = (
            f"SELECT {SEALED} FROM turns WHERE {self.tables.within}number > ? AND (read_by IS NULL OR read_by <> ? "  # noqa: S608
            f"OR checksum IS NULL OR NOT coalesce({self.tables.is_read}, 1 = 0)) ORDER BY number LIMIT {AT_ONCE}"
        )
        last = -HIGHEST
        while rows := self.reading.rows(sql, (*self.key, last, VERSION)):
            last = rows[-1]["number"]
            turns = self._readable(rows).items()
            read = [(*row_of(one, one.stems)[len(WRITTEN_COLUMNS) :], *self.key, number) for number, one in turns]
            self.writing.executemany(update, read)

    def _fill(self) -> None:
        """Copy from the database what the matrix lacks: a process may have died between the two."""
        index, dimension = self.index, self._dimension() if self.index.unfilled else None
        if dimension is None:
            return
        index.matrix = index.matrix or MappedMatrix(self.matrix_file, dimension)
        index.matrix.reserve(index.columns.size)
        missing = np.unique(index.matrix.unwritten(np.concatenate([np.array(one, np.intp) for one in index.unfilled])))
        sql = f"SELECT number, vector FROM vectors WHERE {self.tables.within}number BETWEEN ? AND ?"  # noqa: S608
        for ends in _ranges(missing):
            for rows in self.reading.batches(sql, (*self.key, *ends)):
                # Without one of its own, a turn is found by its words.
                sound = [row for row in rows if isinstance(row[1], bytes) and len(row[1]) == 4 * dimension]
                vectors = np.frombuffer(b"".join(row[1] for row in sound), np.float32).reshape(-1, dimension)
                is_unit = are_unit(vectors)
                index.matrix.put(np.array([row[0] for row in sound], np.intp)[is_unit], vectors[is_unit])
        index.unfilled.clear()

    def _dimension(self) -> int | None:
        """Return how many numbers a vector has; None before the first."""
        if self.index.matrix is not None:
            return self.index.matrix.dimension
        sql = (
            f"SELECT length(vector) FROM vectors WHERE {self.tables.within}length(vector) > 0 "  # noqa: S608
            "AND length(vector) % 4 = 0 LIMIT 5"
        )
        lengths = [row[0] for row in self.reading.rows(sql, self.key)]
        return mode(lengths) // 4 if lengths else None

    def _check_dimension(self, dimension: int) -> None:
        held = self._dimension()
        if held not in (None, dimension):
            raise StoreConflictError(
                f"{self.reading.place} holds vectors of {held} numbers, this one has {dimension}: use the model that "
                "the store was made with, or another store"
            )

    def _admit(self, conditions: Conditions) -> Places:
        """Return the numbers of the turns that meet the conditions, ascending; texts are read for `where` alone."""
        numbers = admitted_numbers(self.index.columns, conditions)
        if conditions.where:
            turns = self.by_numbers(numbers.tolist())
            numbers = np.array([number for number, turn in turns.items() if conditions.admits(turn)], np.int64)
        return numbers

    def _read(self, column: str, values: Sequence[object]) -> dict[int, Turn]:
        """Return the turns that have one of the values, by number."""
        found: dict[int, Turn] = {}
        for marks, part in batches_of_values(values):
            sql = f"SELECT {SEALED} FROM turns WHERE {self.tables.within}{column} IN ({marks}) ORDER BY number"  # noqa: S608
            found |= self._readable(self.reading.rows(sql, (*self.key, *part)))
        return found

    def _readable(self, rows: Iterable[SqlRow]) -> dict[int, Turn]:
        found: dict[int, Turn] = {}
        for row in rows:
            number = row["number"]
            try:
                if not self.is_number(number):
                    raise ValueError("no turn has its number")  # noqa: TRY301  (one way for all that is damaged)
                if row["checksum"] not in (None, seal_of([row[name] for name in WRITTEN_COLUMNS])):
                    raise ValueError("its checksum does not fit")  # noqa: TRY301
                found[number] = turn_of(row)
            except (ValueError, TypeError) as problem:
                self._leave_out(number, problem)
        return found

    def _leave_out(self, number: int, why: object) -> None:
        if number not in self.index.unreadable:
            self.reading.leave_out(f"turn {number}", why, "Restore a backup, or forget its owner", (*self.key, number))
            self.index.unreadable.add(number)
        self._drop(number)

    def _drop(self, number: int) -> None:
        if gone := self.index.columns.alive([number]):
            self.index.columns.discard(gone)
            self.index.postings.discard(gone)

    def _numbers(self, column: str, values: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the turns that have one of the values, by id."""
        found: dict[str, int] = {}
        for marks, part in batches_of_values(values):
            sql = f"SELECT id, number FROM turns WHERE {self.tables.within}{column} IN ({marks})"  # noqa: S608
            found |= {row[0]: row[1] for row in self.reading.rows(sql, (*self.key, *part))}
        return found


def _ranges(numbers: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that are near each other: a server takes thrice as long for a list."""
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > _GAP) + 1):
        for part in np.split(run, range(AT_ONCE, len(run), AT_ONCE)):
            if len(part):
                yield int(part[0]), int(part[-1])


def _sound(rows: Sequence[SqlRow], above: int) -> Sequence[SqlRow]:
    """Return those of `_LOADED` whose numbers go up from `above`, and whose names are texts."""
    numbers = [row["number"] for row in rows]
    is_in_order = all(map(lt, [above, *numbers], numbers))
    if is_in_order and bytes not in {type(name) for row in rows for name in row[_NAMES]}:
        return rows
    sound = []
    for row, following in zip(rows, [*numbers[1:], HIGHEST + 1], strict=True):
        if above < row["number"] < following and not any(isinstance(name, bytes) for name in row[_NAMES]):
            sound.append(row)
            above = row["number"]
    return sound
