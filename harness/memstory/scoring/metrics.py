"""Scores of a ranked list against gold ids: binary relevance, the same numbers as trec_eval gives.

`retrieved` is best first; an id that appears twice counts once, at its first place. A question with nothing relevant
has no score here: whether a memory stays silent is another measure, so it is an error instead of a 0 or a NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import log2
from statistics import fmean


def recall_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant ids that is among the first k.

    >>> recall_at_k(["b", "a", "c"], {"a", "c"}, 2)
    0.5
    """
    gold = _gold(relevant, k)
    return sum(_gains(retrieved, gold, k)) / len(gold)


def recall_all_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1.0 if every relevant id is among the first k, else 0.0.

    >>> recall_all_at_k(["b", "a", "c"], {"a", "c"}, 2)
    0.0
    """
    return float(recall_at_k(retrieved, relevant, k) == 1.0)


def precision_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of k places that hold a relevant id; the denominator stays k when fewer came back.

    >>> round(precision_at_k(["b", "a", "c"], {"a", "c"}, 3), 4)
    0.6667
    """
    return sum(_gains(retrieved, _gold(relevant, k), k)) / k


def success_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1.0 if any relevant id is among the first k, else 0.0; also known as hit@k.

    >>> success_at_k(["b", "a", "c"], {"a", "c"}, 1)
    0.0
    """
    return float(any(_gains(retrieved, _gold(relevant, k), k)))


def reciprocal_rank(retrieved: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / rank of the first relevant id, 0.0 if there is none; its mean over questions is MRR.

    >>> reciprocal_rank(["b", "a", "c"], {"a", "c"})
    0.5
    """
    gold = _gold(relevant, 1)
    return next((1 / rank for rank, found in enumerate(_distinct(retrieved), start=1) if found in gold), 0.0)


def ndcg_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the discounted gain of the first k, as a share of the best possible one.

    >>> round(ndcg_at_k(["b", "a", "c"], {"a", "c"}, 3), 10)
    0.6934264036
    """
    gold = _gold(relevant, k)
    best = _discounted([True] * min(len(gold), k))
    return _discounted(_gains(retrieved, gold, k)) / best


def is_stale_first(retrieved: Sequence[str], relevant: Collection[str], stale: Collection[str]) -> float:
    """Return 1.0 if an outdated id ranks above every relevant one; 0.0 if a relevant one is first, or neither is there.

    >>> is_stale_first(["x", "old", "new"], {"new"}, {"old"}), is_stale_first(["x"], {"new"}, {"old"})
    (1.0, 0.0)
    """
    gold, outdated = _gold(relevant, 1), frozenset(stale)
    return float(next((found in outdated for found in retrieved if found in gold or found in outdated), False))


def mean(values: Iterable[float]) -> float:
    """Return the arithmetic mean; there is none of nothing, so that is a ValueError.

    >>> mean([0.0, 0.5, 1.0])
    0.5
    """
    numbers = list(values)
    if not numbers:
        raise ValueError("the mean of no values: leave the score out instead")
    return fmean(numbers)


def _gold(relevant: Collection[str], k: int) -> frozenset[str]:
    if k < 1:
        raise ValueError(f"k is {k}, allowed is 1 or more")
    if not relevant:
        raise ValueError("nothing is relevant to this question: score its abstention instead")
    return frozenset(relevant)


def _distinct(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _gains(retrieved: Sequence[str], gold: frozenset[str], k: int) -> list[bool]:
    return [found in gold for found in _distinct(retrieved)[:k]]


def _discounted(gains: Sequence[bool]) -> float:
    # Järvelin & Kekäläinen 2002, in trec_eval's form: the first place is divided by log2(2) = 1.
    return sum(gain / log2(place + 1) for place, gain in enumerate(gains, start=1) if gain)
