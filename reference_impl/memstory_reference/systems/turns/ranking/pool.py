"""The few turns of one owner that are ranked for a question, and what is known of all the others; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

K1, B = 1.2, 0.75
"""BM25's own defaults: how fast a repeated word stops counting, and how far long turns are marked down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A turn as far as it is ranked. `place` names it, `before` and `after` its neighbours in the same session.

    `moment` is when it was said, or noted where nobody knows; `cosine` is its nearness to the question.
    """

    id: str
    place: int
    before: int | None
    after: int | None
    session: str | None
    speaker: str | None
    moment: datetime
    is_dated: bool
    text: str
    stems: Sequence[str]
    cosine: float
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one owner; `holding` counts the owner's turns that have a stem, for the stems of the question."""

    candidates: Sequence[Candidate]
    holding: Mapping[str, int]
    turns: int
    mean_words: float

    def rarity(self, stem: str) -> float:
        """Return the inverse document frequency of a stem among the owner's turns."""
        held = self.holding.get(stem, 0)
        return math.log(1 + (self.turns - held + 0.5) / (held + 0.5))

    def bm25(self, stems: Sequence[str]) -> NDArray[np.float64]:
        """Return BM25 of each candidate."""
        return np.array([self._bm25(stems, one) for one in self.candidates], float)

    def found(self, stems: Sequence[str]) -> NDArray[np.float64]:
        """Return which share of the question each candidate has: of its stems, each by its rarity; 0 to 1."""
        rarity = {stem: self.rarity(stem) for stem in stems}
        whole = sum(rarity.values())
        if not whole:
            return np.zeros(len(self.candidates))
        has = [set(one.stems) for one in self.candidates]
        return np.array([sum(value for stem, value in rarity.items() if stem in own) / whole for own in has], float)

    def _bm25(self, stems: Sequence[str], candidate: Candidate) -> float:
        counts = Counter(candidate.stems)
        norm = K1 * (1 - B + B * len(candidate.stems) / (self.mean_words or 1.0))
        return sum(
            self.rarity(stem) * counts[stem] * (K1 + 1) / (counts[stem] + norm) for stem in stems if counts[stem]
        )


def evidence(cosine: float, found: float) -> float:
    """Return how sure it is that a turn is about a question, whatever else is in the pool: from -1 to 1.

    The cosine, raised by the words that it has: all of them prove it, and half of them hardly anything.

    >>> evidence(0.5, 0.5), evidence(0.4, 0.0), evidence(0.4, 1.0)
    (0.5625, 0.4, 1.0)
    """
    return cosine + (1 - cosine) * found**3
