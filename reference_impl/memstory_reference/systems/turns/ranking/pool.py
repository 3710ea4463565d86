"""The few turns of one owner that are ranked for a question, as columns, and what is known of all the others; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1, B = 1.2, 0.75
"""BM25's own defaults: how fast a repeated word stops counting, and how far long turns are marked down."""

NOBODY = -1
"""Where a turn has no session, no speaker, or no turn beside it in the pool."""

IS_DATED, BY_ASSISTANT, IS_FOREIGN = 1, 2, 4
"""Signs of a turn: the moment at which it was said is known; an assistant said it; no person said it."""

Numbers = NDArray[np.floating]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one owner: row i of each column is candidate i. `numbers` are ascending, in the order of adding.

    `before` and `after` are rows of the neighbours in the same session; `sessions` and `speakers` are codes that hold
    in this pool, `named` gives the code of a speaker. `moments` are microseconds since 1970, `signs` are bits. `times`
    has a row for each of `stems`, the question's: how often each candidate has it. `vectors` has a row for each
    candidate, and `contexts` the cosine of each together with the turns beside it.

    `holding` counts the owner's turns that have a stem, for the stems that any of them has.
    """

    numbers: Places
    before: Places
    after: Places
    sessions: Places
    speakers: Places
    named: Mapping[str, int]
    moments: Places
    signs: NDArray[np.uint8]
    words: Places
    cosines: Numbers
    contexts: Numbers
    vectors: NDArray[np.float32]
    stems: Sequence[str]
    times: Places
    holding: Mapping[str, int]
    turns: int
    mean_words: float

    def __len__(self) -> int:
        return len(self.numbers)

    def bm25(self) -> Numbers:
        """Return BM25 of each candidate."""
        return self._rarities() @ saturation(self.times, self.words, self.mean_words)

    def coverage(self) -> Numbers:
        """Return which share of the question each candidate has: of its stems, each by its rarity; 0 to 1."""
        rare = self._rarities()
        whole = rare.sum()
        share: Numbers = rare @ (self.times > 0) / whole if whole else np.zeros(len(self))
        return share

    def _rarities(self) -> Numbers:
        return np.array([rarity(self.holding.get(stem, 0), self.turns) for stem in self.stems], float)


def rarity(holding: int, turns: int) -> float:
    """Return the inverse document frequency of a stem that so many of the turns have."""
    return math.log(1 + (turns - holding + 0.5) / (holding + 0.5))


def saturation(times: NDArray[Any], words: NDArray[Any], mean_words: float) -> Numbers:
    """Return what BM25 makes of a stem that turns of so many words have so often, before its rarity counts."""
    norm = K1 * (1 - B + B * words / (mean_words or 1.0))
    counted: Numbers = times * (K1 + 1) / (times + norm)
    return counted


def with_neighbours(
    vectors: NDArray[np.float32], before: NDArray[np.float32], after: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the unit vector of each turn with half of those beside it; a row of zeros stands where there is none."""
    whole = vectors + (before + after) * np.float32(0.5)
    # The vector of a turn may have been lost.
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", whole, whole)), np.float32(1e-9))
    unit: NDArray[np.float32] = whole / lengths[:, None]
    return unit


def empty_pool(holding: Mapping[str, int] | None = None, turns: int = 0, mean_words: float = 0.0) -> Pool:
    """Return a pool without candidates."""
    none = np.zeros(0, np.int64)
    return Pool(
        **dict.fromkeys(("numbers", "before", "after", "sessions", "speakers", "moments", "words"), none),
        named={}, signs=np.zeros(0, np.uint8), cosines=np.zeros(0), contexts=np.zeros(0),
        vectors=np.zeros((0, 0), np.float32), stems=(), times=np.zeros((0, 0), np.int64), holding=holding or {},
        turns=turns, mean_words=mean_words,
    )  # fmt: skip


def rows_of(numbers: Places, wanted: Places) -> Places:
    """Return the row of each wanted number among ascending numbers, NOBODY for one that is not there."""
    if not len(numbers):
        return np.full(len(wanted), NOBODY, np.int64)
    rows = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[rows] == wanted, rows, NOBODY)


def evidence(cosine: float, found: float) -> float:
    """Return how sure it is that a turn is about a question, whatever else is in the pool: from -1 to 1.

    The cosine, raised by the words that it has: all of them prove it, and half of them hardly anything.

    >>> evidence(0.5, 0.5), evidence(0.4, 0.0), evidence(0.4, 1.0)
    (0.5625, 0.4, 1.0)
    """
    return cosine + (1 - cosine) * found**3
