"""What is ranked of each turn of one owner, in memory: a row for each number, 31 bytes; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.ranking.pool import NOBODY, Places
from memstory_reference.systems.turns.turn import KINDS

_ROW = np.dtype(
    [
        *(("moment", np.int64), ("session", np.int32), ("speaker", np.int32), ("before", np.int32)),
        *(("after", np.int32), ("words", np.int32), ("kind", np.uint8), ("signs", np.uint8), ("alive", np.bool_)),
    ]
)
_FEWEST = 64


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
