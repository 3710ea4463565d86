"""Reciprocal rank fusion: one order from several, of which only the ranks count (seed 003, C-06)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

K = 60
"""Cormack, Clarke, Büttcher 2009: a small constant lets the first place of one list outweigh all the others."""


def rrf_score(ranks: Sequence[int | None], k: int = K) -> float:
    """Return the sum of `1 / (k + rank)`; ranks count from 1, None is a list that does not hold the thing.

    >>> round(rrf_score([1, 1]), 10), round(rrf_score([1, None]), 10)
    (0.0327868852, 0.0163934426)
    """
    return sum(1.0 / (k + rank) for rank in ranks if rank is not None)


def fuse(lists: Sequence[Sequence[str]], k: int = K) -> dict[str, float]:
    """Return the fused score of every id in any of `lists`, each of which is best first.

    >>> {name: round(score, 10) for name, score in fuse([["a", "b", "c"], ["c", "d"]]).items() if name in "bcd"}
    {'b': 0.0161290323, 'c': 0.0322664585, 'd': 0.0161290323}
    """
    ranks = [{name: rank for rank, name in enumerate(dict.fromkeys(ranked), start=1)} for ranked in lists]
    return {name: rrf_score([one.get(name) for one in ranks], k) for name in dict.fromkeys(chain.from_iterable(lists))}
