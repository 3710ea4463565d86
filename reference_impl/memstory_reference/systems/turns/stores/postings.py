"""Which turns of one owner have which stem, and how often: 8 bytes a word, in one sorted array; pure."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.ranking.pool import Places

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
