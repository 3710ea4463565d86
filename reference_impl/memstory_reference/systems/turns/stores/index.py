"""What is in memory of one owner: columns of what is ranked, postings of words, and the pool of a question; pure."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.vector_matrix import MappedMatrix, cosines, products
from memstory_reference.systems.turns.ranking import (
    NOBODY,
    Places,
    Pool,
    empty_pool,
    rarity,
    rows_of,
    saturation,
    with_neighbours,
)
from memstory_reference.systems.turns.turn import KINDS, Conditions

_ROW = np.dtype(
    [
        *(("moment", np.int64), ("session", np.int32), ("speaker", np.int32), ("before", np.int32)),
        *(("after", np.int32), ("words", np.int32), ("kind", np.uint8), ("signs", np.uint8), ("alive", np.bool_)),
    ]
)
_FEWEST = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Features(NamedTuple):
    """What of a turn is ranked. `moment` is in microseconds since 1970, `words` counts them."""

    number: int
    moment: int
    kind: str
    session: str | None
    speaker: str | None
    signs: int
    words: int


class Columns:
    """The rows up to `size`; those of deleted turns are not alive."""

    def __init__(self) -> None:
        self._rows = np.zeros(_FEWEST, _ROW)
        self.size = 0
        self.turns = 0
        self._all_words = 0
        self._sessions: dict[str, int] = {}
        self._speakers: dict[str, int] = {}
        self._spoken = Counter[str]()
        self._last: dict[int, int] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column."""
        return self._rows[name][: self.size]

    def rows(self, numbers: Places) -> NDArray[Any]:
        """Return the rows of some turns, as a copy."""
        return self._rows[numbers]

    @property
    def mean_words(self) -> float:
        """How many words a turn has."""
        return self._all_words / max(self.turns, 1)

    @property
    def speakers(self) -> Mapping[str, int]:
        """The codes of those who speak in turns that are alive."""
        return {name: self._speakers[name] for name, count in self._spoken.items() if count}

    def session(self, name: str) -> int | None:
        """Return the code of a session, None for an unknown one."""
        return self._sessions.get(name)

    def neighbours(self, numbers: Places) -> tuple[Places, Places]:
        """Return the numbers of the turns before and after each, NOBODY where there is none."""
        rows = self._rows[numbers]
        return rows["before"].astype(np.int64), rows["after"].astype(np.int64)

    def alive(self, numbers: Sequence[int]) -> list[int]:
        """Return those of some numbers that turns have."""
        return [one for one in numbers if 0 <= one < self.size and self._rows["alive"][one]]

    def reserve(self, size: int) -> None:
        """Say up to which number rows are known; numbers below it that were not put are dead."""
        if size > len(self._rows):
            grown = np.zeros(max(2 * len(self._rows), size), _ROW)
            grown[: self.size] = self._rows[: self.size]
            self._rows = grown
        self.size = max(self.size, size)

    def put(self, features: Sequence[Features]) -> None:
        """Note turns in ascending order; one whose number is there is replaced, and keeps its place."""
        new = [one for one in features if one.number >= self.size or not self._rows["alive"][one.number]]
        fresh = {one.number for one in new}
        old = [one for one in features if one.number not in fresh]
        self.discard([one.number for one in old])
        if new:
            self.load(list(zip(*new, strict=True)))
        for one in old:
            self._fill([[value] for value in one])
            self._insert(one.number)

    def load(self, columns: Sequence[Sequence[Any]]) -> None:
        """Note turns with higher numbers than all before, ascending: a column for each field of `Features`."""
        self.reserve(columns[0][-1] + 1)
        self._append(self._fill(columns))

    def discard(self, numbers: Sequence[int]) -> None:
        """Take turns out; those beside them stand beside each other. One that is not alive is out already."""
        names = {code: name for name, code in self._speakers.items()}
        for number in self.alive(numbers):
            row = self._rows[number]
            before, after, session = int(row["before"]), int(row["after"]), int(row["session"])
            if before != NOBODY:
                self._rows["after"][before] = after
            if after != NOBODY:
                self._rows["before"][after] = before
            if self._last.get(session) == number:
                self._last[session] = before
            if row["speaker"] != NOBODY:
                self._spoken[names[int(row["speaker"])]] -= 1
            self.turns -= 1
            self._all_words -= int(row["words"])
            self._rows["alive"][number] = False

    def _fill(self, columns: Sequence[Sequence[Any]]) -> Places:
        """Write rows, as yet without neighbours; return the numbers of those that somebody said in a session."""
        numbers, moments, kinds, sessions, speakers, signs, words = columns
        places = np.array(numbers, np.int64)
        rows = np.zeros(len(numbers), _ROW)
        rows["moment"], rows["signs"], rows["words"] = moments, signs, words
        rows["kind"] = [KINDS.index(kind) for kind in kinds]
        rows["session"], rows["speaker"] = _codes(sessions, self._sessions), _codes(speakers, self._speakers)
        rows["before"], rows["after"], rows["alive"] = NOBODY, NOBODY, True
        self._rows[places] = rows
        self._spoken.update(one for one in speakers if one is not None)
        self.turns += len(numbers)
        self._all_words += int(sum(words))
        spoken: Places = places[(rows["session"] != NOBODY) & (rows["speaker"] != NOBODY)]
        return spoken

    def _append(self, numbers: Places) -> None:
        """Let new turns stand behind the last ones of their sessions."""
        sessions = self._rows["session"][numbers]
        order = np.lexsort((numbers, sessions))
        numbers, sessions = numbers[order], sessions[order]
        follows = np.diff(sessions, prepend=NOBODY) == 0
        self._join(numbers[:-1][follows[1:]], numbers[1:][follows[1:]])
        for number, session in zip(numbers[~follows].tolist(), sessions[~follows].tolist(), strict=True):
            if (last := self._last.get(session, NOBODY)) != NOBODY:
                self._join(last, number)
        self._last |= dict(zip(sessions.tolist(), numbers.tolist(), strict=True))

    def _insert(self, number: int) -> None:
        """Let a turn stand in its session by its number."""
        row = self._rows[number]
        session = int(row["session"])
        if session == NOBODY or row["speaker"] == NOBODY:
            return
        members = np.flatnonzero((self["session"] == session) & (self["speaker"] != NOBODY) & self["alive"])
        place = int(np.searchsorted(members, number))
        if place:
            self._join(members[place - 1], number)
        if place + 1 < len(members):
            self._join(number, members[place + 1])
        self._last[session] = int(members[-1])

    def _join(self, before: int | Places, after: int | Places) -> None:
        self._rows["after"][before] = after
        self._rows["before"][after] = before


def _codes(names: Sequence[str | None], known: dict[str, int]) -> list[int]:
    return [NOBODY if name is None else known.setdefault(name, len(known)) for name in names]


_NUMBER_BITS = np.uint64(32)
_NUMBER = np.uint64(2**32 - 1)
_FEW, _SHARE = 10_000, 8
"""New words wait in a second array until they are more than this, and than this part of the first."""

_NONE = np.zeros(0, np.uint64)


def stem_codes(stems: Sequence[str]) -> NDArray[np.uint32]:
    """Return 32 bits for each stem: of 50,000 stems one in 86,000 pairs is taken for another, and no text is kept."""
    return np.array([_code(stem) for stem in stems], np.uint32)


class Postings:
    """An entry for each word of each turn: the code of its stem above the number of the turn."""

    def __init__(self) -> None:
        self._parts = [_NONE, _NONE]
        self._waiting: list[NDArray[np.uint64]] = []

    def add(self, numbers: Places, stems: NDArray[np.uint32]) -> None:
        """Note words: the turn of each, and the code of its stem."""
        self._waiting.append(stems.astype(np.uint64) << _NUMBER_BITS | numbers.astype(np.uint64))

    def discard(self, numbers: Sequence[int]) -> None:
        """Take all words of some turns out."""
        self._sort()
        gone = np.array(numbers, np.uint64)
        self._parts = [part[~np.isin(part & _NUMBER, gone)] for part in self._parts]

    def of(self, stem: str) -> tuple[Places, Places]:
        """Return the turns that have a stem, ascending, and how often each has it."""
        self._sort()
        low = np.uint64(_code(stem)) << _NUMBER_BITS
        ends = np.array([low, low + _NUMBER], np.uint64)
        found = [part[slice(*np.searchsorted(part, ends))] for part in self._parts]
        entries = np.sort(np.concatenate(found)) if len(found[1]) else found[0]
        ends = np.append(np.flatnonzero(entries[1:] != entries[:-1]), len(entries) - 1)[: len(entries)]
        last = np.append(-1, ends)
        return (entries[ends] & _NUMBER).astype(np.int64), last[1:] - last[:-1]

    def _sort(self) -> None:
        if not self._waiting:
            return
        base, newer = self._parts[0], np.concatenate([self._parts[1], *self._waiting])
        self._waiting = []
        if len(newer) > max(_FEW, len(base) // _SHARE):
            base, newer = np.concatenate([base, newer]) if len(base) else newer, _NONE
            base.sort()
        newer.sort()
        self._parts = [base, newer]


def _code(stem: str) -> int:
    return zlib.crc32(stem.encode())


@dataclass(slots=True, kw_only=True)
class Index:
    """What is in memory of one owner; the matrix is None before the first vector is needed.

    `version` is that of the turns that are in it, 0 of none; turns with `stale` numbers were written since. `unfilled`
    are the numbers of those whose row of the matrix may not be written yet, and what cannot be read is `unreadable`.
    """

    columns: Columns = field(default_factory=Columns)
    postings: Postings = field(default_factory=Postings)
    matrix: MappedMatrix | None = None
    version: int = 0
    stale: set[int] = field(default_factory=set)
    unfilled: list[Sequence[int]] = field(default_factory=list)
    unreadable: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return self.columns.turns


def microseconds(moment: datetime) -> int:
    """Return an aware moment as a number: microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def admitted_numbers(columns: Columns, conditions: Conditions) -> Places:
    """Return the numbers of the turns that meet the conditions except for `where`, ascending."""
    meets = columns["alive"].copy()
    if conditions.kinds:
        meets &= np.isin(columns["kind"], [KINDS.index(kind) for kind in conditions.kinds])
    if conditions.session is not None:
        meets &= columns["session"] == columns.session(conditions.session)
    if conditions.since is not None:
        meets &= columns["moment"] >= microseconds(conditions.since)
    if conditions.until is not None:
        meets &= columns["moment"] <= microseconds(conditions.until)
    return np.flatnonzero(meets)


def pool_of(index: Index, vector: NDArray[np.float32], stems: Sequence[str], size: int, among: Places | None) -> Pool:
    """Return the `size` nearest and the `size` best by words of the turns `among`, or of all, and those beside them."""
    columns = index.columns
    postings = [index.postings.of(stem) for stem in stems]
    holding = {stem: len(numbers) for stem, (numbers, _) in zip(stems, postings, strict=True) if len(numbers)}
    allowed = columns["alive"]
    if among is not None:
        allowed = np.zeros(columns.size, np.bool_)
        allowed[among] = True
    if index.matrix is None or not allowed.any():
        return empty_pool(holding, columns.turns, columns.mean_words)
    near = np.where(allowed, products(index.matrix.rows[: columns.size], vector), -np.inf)
    worded = np.zeros(columns.size)
    for numbers, times in postings:
        rare = rarity(len(numbers), columns.turns)
        worded[numbers] += rare * saturation(times, columns["words"][numbers], columns.mean_words)
    core = np.union1d(_best(near, size), _best(np.where(allowed & (worded > 0), worded, -np.inf), size))
    beside = np.concatenate(columns.neighbours(core))
    beside = beside[beside != NOBODY]
    numbers = np.union1d(core, beside[allowed[beside]])
    rows, vectors = columns.rows(numbers), index.matrix.rows[numbers]
    before, after = columns.neighbours(numbers)
    sides = [_admitted_rows(index.matrix, side, allowed) for side in (before, after)]
    return Pool(
        numbers=numbers,
        before=rows_of(numbers, before),
        after=rows_of(numbers, after),
        sessions=rows["session"].astype(np.int64),
        speakers=rows["speaker"].astype(np.int64),
        named=columns.speakers,
        moments=rows["moment"],
        signs=rows["signs"],
        words=rows["words"].astype(np.int64),
        cosines=cosines(vectors, vector),
        contexts=cosines(with_neighbours(vectors, *sides), vector),
        vectors=vectors,
        stems=tuple(stems),
        times=np.array([_at(numbers, *one) for one in postings], np.int64).reshape(len(stems), len(numbers)),
        holding=holding,
        turns=columns.turns,
        mean_words=columns.mean_words,
    )


def _admitted_rows(matrix: MappedMatrix, numbers: Places, allowed: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the vectors of turns that may be known, zeros for the others: what was said later shows nowhere."""
    rows: NDArray[np.float32] = matrix.rows[numbers]
    rows[(numbers == NOBODY) | ~allowed[numbers]] = 0
    return rows


def _at(numbers: Places, having: Places, times: Places) -> Places:
    rows = rows_of(having, numbers)
    return np.where(rows == NOBODY, 0, times[rows]) if len(having) else np.zeros(len(numbers), np.int64)


def _best(scores: NDArray[np.floating], size: int) -> Places:
    """Return the places of the best finite scores; of equal ones at the end, the first."""
    places: Places = np.flatnonzero(np.isfinite(scores))
    if size < len(places):
        finite = scores[places]
        least = np.partition(finite, -size)[-size]
        above, equal = places[finite > least], places[finite == least]
        places = np.concatenate([above, equal[: size - len(above)]])
    return places
