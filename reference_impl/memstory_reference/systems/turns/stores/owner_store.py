"""One owner's turns: a SQLite file, what is ranked of them in memory, and a mapped matrix of their vectors; blocking.

SQLite is the truth. The number of a turn is its row in the matrix; numbers are given in the order of adding.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from operator import lt
from pathlib import Path
from sqlite3 import Row
from statistics import mode

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.database_store import Database, batches_of_values
from memstory_reference.storage.mapped_matrix import MappedMatrix
from memstory_reference.storage.reindexing import EmbeddedFile, EmbeddedTable
from memstory_reference.storage.vector_matrix import unit_vector
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import Places, Pool
from memstory_reference.systems.turns.stores.columns import Columns, Features
from memstory_reference.systems.turns.stores.owner_pool import Index, admitted_numbers, pool_of
from memstory_reference.systems.turns.stores.postings import Postings, stem_codes
from memstory_reference.systems.turns.stores.store import IndexedTurn, latest_of
from memstory_reference.systems.turns.stores.turn_rows import (
    COLUMNS,
    VERSION,
    WRITTEN_COLUMNS,
    features_of,
    seal_of,
    turn_of,
    values_of,
)
from memstory_reference.systems.turns.turn import Turn

LOG = logging.getLogger(__name__)
SCHEMA_VERSION = "3"
_MIGRATIONS = {"2": "ALTER TABLE turns ADD COLUMN checksum TEXT"}
SUFFIX = ".sqlite3"

# Texts stand last: what is read of all turns when an owner is opened lies before them.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT UNIQUE,
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
    checksum TEXT
);
CREATE INDEX IF NOT EXISTS by_session ON turns (session, number);
CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY, vector BLOB NOT NULL);
"""
MATRIX = "*.f32"
"""The copies of the vectors that are mapped into memory: made again where they are gone."""

EMBEDDED_FILE = EmbeddedFile(
    name=f"{'[0-9a-f]' * 32}{SUFFIX}",
    schema=_SCHEMA,
    version=SCHEMA_VERSION,
    migrations=_MIGRATIONS,
    tables=[
        EmbeddedTable(
            select=f"SELECT {COLUMNS} FROM turns ORDER BY number",  # noqa: S608
            update="INSERT OR REPLACE INTO vectors (vector, number) VALUES (?, ?)",
            text=lambda row: turn_of(row).embedded,
        )
    ],
)
_READ = ("moment", "signs", "stems", "read_by", "checksum")
_ALL = (*WRITTEN_COLUMNS, *_READ)
_MARKS = ", ".join("?" * len(_ALL))
_INSERT = f"INSERT INTO turns ({', '.join(_ALL)}, number) VALUES ({_MARKS}, ?)"  # noqa: S608
_UPDATE = f"UPDATE turns SET ({', '.join(_ALL)}) = ({_MARKS}) WHERE number = ?"  # noqa: S608
_READ_AGAIN = "UPDATE turns SET (moment, signs, stems, read_by, checksum) = (?, ?, ?, ?, ?) WHERE number = ?"
_IS_READ = (
    "typeof(moment) = 'integer' AND typeof(signs) = 'integer' AND signs BETWEEN 0 AND 255 AND typeof(stems) = 'blob' "
    "AND length(stems) % 4 = 0"
)
_LOAD = (
    "SELECT number, moment, kind, session, speaker, signs, length(stems) / 4, stems FROM turns "  # noqa: S608
    f"WHERE number BETWEEN 1 AND ? AND kind IN ('turn', 'note') AND {_IS_READ} ORDER BY number"
)
_SEALED = f"{COLUMNS}, checksum"
_NAMES = slice(3, 5)
"""Session and speaker in a row of `_LOAD`."""

_LENGTHS = "SELECT length(vector) FROM vectors WHERE length(vector) > 0 AND length(vector) % 4 = 0 LIMIT 5"
_HIGHEST = 2**32 - 1
"""No number is higher: it would be no turn's, and the memory for all below it is not to be had."""


class OwnerStore:
    """The files of one owner; one thread at a time."""

    def __init__(self, file: Path, *, model: str) -> None:
        self._file, self._model = file, model
        self._open: Database | None = None
        self._may_write = False
        self._is_known = False
        self._unreadable = set[int]()
        self._matrix: MappedMatrix | None = None
        try:
            self._load()
        except BaseException:
            self.close()
            raise
        if self.count():  # SQLite keeps in memory what it has read
            self._close_database()

    @property
    def _db(self) -> Database:
        """The file, to write."""
        if self._open is None or not self._may_write:
            self._close_database()
            about = {} if self._is_known else {"schema": SCHEMA_VERSION, "model": self._model}
            schema = "" if self._is_known else _SCHEMA
            self._open = Database(self._file, schema=schema, about=about, migrations=_MIGRATIONS)
            self._may_write = self._is_known = True
        return self._open

    @property
    def _texts(self) -> Database:
        """The file, to read: to open it again after a rest must not cost more than to search it."""
        # A log is left where the disk had no room for what it holds.
        if self._open is None and self._is_known and not Path(f"{self._file}-wal").exists():
            self._open = Database(self._file, schema=None)
        return self._open or self._db

    def put(self, written: Sequence[IndexedTurn]) -> None:
        """Write turns, all or none; the last of the same id counts."""
        if not written:
            return
        latest = latest_of(written)
        held = self._numbers([one.turn.id for one in latest])
        known = {one: number for one, number in held.items() if self._is_number(number)}
        matrix = self._matrix_for(len(written[0].vector))
        matrix.reserve(self._columns.size + len(latest))
        matrix.wipe(list(known.values()))
        # Given here: after a row whose number is damaged, SQLite would go on from that.
        fresh = count(max(self._columns.size, 1))
        numbers = [known.get(one.turn.id) or next(fresh) for one in latest]
        vectors = np.stack([one.vector for one in latest]).astype(np.float32)
        try:
            noted = [
                (features_of(one.turn, number, len(one.stems)), stem_codes(one.stems))
                for one, number in zip(latest, numbers, strict=True)
            ]
            rows = [
                (*values, features.moment, features.signs, words.tobytes(), VERSION, seal_of(values), features.number)
                for values, (features, words) in zip((values_of(one.turn) for one in latest), noted, strict=True)
            ]
            with self._db.transaction():
                keyed = [(one.turn.key, one.turn.id) for one in latest if one.turn.key is not None]
                self._db.executemany("UPDATE turns SET key = NULL WHERE key = ? AND id != ?", keyed)
                self._db.executemany(_UPDATE, [row for row in rows if row[0] in known])
                self._db.executemany(_INSERT, [row for row in rows if row[0] not in known])
                bytes_of = [(number, row.tobytes()) for number, row in zip(numbers, vectors, strict=True)]
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", bytes_of)
        except BaseException:
            self._repair()  # what was wiped holds still
            raise
        matrix.put(numbers, vectors)
        if known:
            self._postings.discard(list(known.values()))
            self._unreadable.difference_update(known.values())
            self._db.forget_log()  # the text from before an update is nowhere any more
        self._note(noted)

    def get(self, ids: Sequence[str]) -> list[Turn]:
        """Return the turns that exist, in the order of `ids`."""
        found = {turn.id: turn for turn in self._read("id", ids).values()}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def by_numbers(self, numbers: Sequence[int]) -> dict[int, Turn]:
        """Return the turns that exist, by number."""
        found = self._read("number", numbers)
        for number in self._columns.alive([one for one in numbers if one not in found]):
            self._leave_out(number, "it is not where it belongs")
        return found

    def by_keys(self, keys: Sequence[str]) -> dict[str, Turn]:
        """Return the turns that exist, by their keys."""
        return {turn.key: turn for turn in self._read("key", keys).values() if turn.key is not None}

    def list_turns(self, conditions: Conditions, limit: int | None) -> list[Turn]:
        """Return the last `limit` turns that meet the conditions, in the order of adding."""
        while True:
            numbers = self._admit(conditions)
            last = numbers if limit is None else numbers[max(len(numbers) - limit, 0) :]
            turns = self.by_numbers(last.tolist())
            if len(turns) == len(last):  # what could not be read is not admitted any more
                return list(turns.values())

    def pool(self, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions) -> Pool:
        """Return the candidates for a question."""
        if self._matrix is not None:
            self._matrix.check(len(vector))
        index = Index(columns=self._columns, postings=self._postings, matrix=self._matrix)
        return pool_of(index, vector, stems, size, None if conditions.is_open else self._admit(conditions))

    def speakers(self) -> frozenset[str]:
        """Return who speaks."""
        return frozenset(self._columns.speakers)

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete turns; return the ids that existed."""
        numbers = self._numbers(ids)
        if numbers:
            gone = list(numbers.values())
            if self._matrix is not None:
                self._matrix.wipe([one for one in gone if self._is_number(one)])
            try:
                with self._db.transaction():
                    for table in ("turns", "vectors"):
                        self._db.executemany(f"DELETE FROM {table} WHERE number = ?", [(one,) for one in gone])  # noqa: S608
            except BaseException:
                self._repair()
                raise
            self._postings.discard(self._columns.alive(gone))
            self._columns.discard(gone)
            self._unreadable.difference_update(gone)
            self._db.forget_log()
        return [one for one in dict.fromkeys(ids) if one in numbers]

    def unreadable(self) -> int:
        """Read all turns; return how many cannot be read, with those that SQLite has lost."""
        self.list_turns(Conditions(), None)
        return len(self._unreadable) + self._lost

    def of_session(self, session: str) -> list[str]:
        """Return the ids of the turns of a session."""
        return [row[0] for row in self._texts.execute("SELECT id FROM turns WHERE session = ?", (session,))]

    def count(self) -> int:
        """Count the turns."""
        return self._columns.turns

    def close(self) -> None:
        """Close both files until they are asked for again; what is in memory stays."""
        if self._matrix is not None:
            self._matrix.close()
        self._close_database()

    def _close_database(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open, self._may_write = None, False

    def _note(self, written: Sequence[tuple[Features, NDArray[np.uint32]]]) -> None:
        ordered = sorted(written, key=lambda one: one[0].number)
        self._columns.put([features for features, _ in ordered])
        numbers = np.array([features.number for features, _ in ordered], np.int64)
        words = [stems for _, stems in ordered]
        self._postings.add(np.repeat(numbers, [len(one) for one in words]), np.concatenate(words))

    def _admit(self, conditions: Conditions) -> Places:
        """Return the numbers of the turns that meet the conditions, ascending; texts are read for `where` alone."""
        numbers = admitted_numbers(self._columns, conditions)
        if conditions.where:
            turns = self.by_numbers(numbers.tolist())
            numbers = np.array([number for number, turn in turns.items() if conditions.admits(turn)], np.int64)
        return numbers

    def _is_number(self, number: int) -> bool:
        return 0 < number < self._columns.size

    def _read(self, column: str, values: Sequence[object]) -> dict[int, Turn]:
        """Return the turns that have one of the values, by number."""
        found: dict[int, Turn] = {}
        for marks, part in batches_of_values(values):
            sql = f"SELECT {_SEALED} FROM turns WHERE {column} IN ({marks}) ORDER BY number"  # noqa: S608
            found |= self._readable(self._texts.rows(sql, part))
        return found

    def _readable(self, rows: Iterable[Row]) -> dict[int, Turn]:
        found: dict[int, Turn] = {}
        for row in rows:
            number = row["number"]
            try:
                if not self._is_number(number):
                    raise ValueError("no turn has its number")  # noqa: TRY301  (one way for all that is damaged)
                if row["checksum"] not in (None, seal_of([row[name] for name in WRITTEN_COLUMNS])):
                    raise ValueError("its checksum does not fit")  # noqa: TRY301
                found[number] = turn_of(row)
            except (ValueError, TypeError) as problem:
                self._leave_out(number, str(problem))
        return found

    def _leave_out(self, number: int, why: str) -> None:
        if number not in self._unreadable:
            advice = "Restore a backup, or forget its owner"
            LOG.error("%s: turn %d is damaged and left out: %s. %s", self._file, number, why, advice)
            self._unreadable.add(number)
        if gone := self._columns.alive([number]):
            self._columns.discard(gone)
            self._postings.discard(gone)

    def _numbers(self, ids: Sequence[str]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for marks, part in batches_of_values(ids):
            rows = self._texts.execute(f"SELECT id, number FROM turns WHERE id IN ({marks})", part)  # noqa: S608
            found |= {row[0]: row[1] for row in rows}
        return found

    def _matrix_for(self, dimension: int) -> MappedMatrix:
        """Return the matrix; StoreConflictError if it holds vectors of another dimension."""
        if self._matrix is not None:
            self._matrix.check(dimension)
        if self._matrix is None:
            self._matrix = MappedMatrix(self._file.with_suffix(".f32"), dimension)
        return self._matrix

    def _load(self) -> None:
        self._columns, self._postings = Columns(), Postings()
        self._lost = self._db.count_lost("turns")
        (last,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'turns'").fetchone()
        if not (isinstance(last, int) and 0 <= last <= _HIGHEST):
            raise UnavailableError(f"{self._file} is damaged: no turn has the number {last!r:.40}. Restore a backup")
        self._columns.reserve(last + 1)
        self._read_again()
        # In parts: the memory that Python takes for all rows at once would stay with the process.
        highest = 0
        for part in self._db.batches(_LOAD, (last,)):
            if not (rows := _sound(part, highest)):
                continue
            highest = rows[-1]["number"]
            *features, words = zip(*rows, strict=True)
            self._columns.load(features)
            numbers = np.repeat(np.array(features[0], np.int64), np.array(features[-1], np.int64))
            self._postings.add(numbers, np.frombuffer(b"".join(words), np.uint32))
        if self._db.execute("SELECT count(*) FROM turns").fetchone()[0] != self._columns.turns:
            every = [row[0] for row in self._db.execute("SELECT number FROM turns")]
            for number in set(every).difference(self._columns.alive(every)):
                self._leave_out(number, "what stands in its row is none")
        lengths = [row[0] for row in self._db.execute(_LENGTHS)]
        if lengths:
            self._matrix_for(mode(lengths) // 4).reserve(self._columns.size)
            self._repair()

    def _read_again(self) -> None:
        """Read the texts that another version has read, or none, and those of which it is not there any more."""
        rows = self._db.rows(
            f"SELECT {_SEALED} FROM turns WHERE read_by IS NOT ? OR checksum IS NULL OR NOT ({_IS_READ})",  # noqa: S608
            (VERSION,),
        )
        turns = self._readable(rows)
        if not turns:
            return
        with self._db.transaction():
            for number, turn in turns.items():
                words = stem_codes(turn.stems)
                features = features_of(turn, number, len(words))
                read = (features.moment, features.signs, words.tobytes(), VERSION, seal_of(values_of(turn)))
                self._db.execute(_READ_AGAIN, (*read, number))

    def _repair(self) -> None:
        """Copy from SQLite what the matrix lacks: a process may have died between the two."""
        if self._matrix is None:
            return
        missing = [int(one) for one in self._matrix.unwritten(np.flatnonzero(self._columns["alive"]))]
        for marks, part in batches_of_values(missing):
            rows = self._db.execute(f"SELECT number, vector FROM vectors WHERE number IN ({marks})", part)  # noqa: S608
            for row in rows:
                vector = unit_vector(row["vector"])
                if vector is not None and len(vector) == self._matrix.dimension:  # without one its words find a turn
                    self._matrix.put([row["number"]], vector)


def _sound(rows: Sequence[Row], above: int) -> Sequence[Row]:
    """Return those of `_LOAD` whose numbers go up from `above`, and whose names are texts."""
    numbers = [row["number"] for row in rows]
    is_in_order = all(map(lt, [above, *numbers], numbers))
    if is_in_order and bytes not in {type(name) for row in rows for name in row[_NAMES]}:
        return rows
    sound = []
    for row, following in zip(rows, [*numbers[1:], _HIGHEST + 1], strict=True):
        if above < row["number"] < following and not any(isinstance(name, bytes) for name in row[_NAMES]):
            sound.append(row)
            above = row["number"]
    return sound
