"""Scores of ranked lists against gold ids, and of silence where nothing answers.

Relevance is binary, and the numbers are those of trec_eval. `retrieved` is best first; an id that appears twice counts
once, at its first place. A question with nothing relevant has no score of its ranking: whether a memory stays silent is
another measure, so it is an error instead of a 0 or a NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import islice, pairwise
from math import inf, log2
from statistics import fmean
from sys import float_info


def recall_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant ids that is among the first k.

    >>> recall_at_k(["b", "a", "c"], {"a", "c"}, 2)
    0.5
    """
    gold = _gold(relevant, k)
    return len(gold.intersection(_first(retrieved, k))) / len(gold)


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
    return len(_gold(relevant, k).intersection(_first(retrieved, k))) / k


def success_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1.0 if any relevant id is among the first k, else 0.0; also known as hit@k.

    >>> success_at_k(["b", "a", "c"], {"a", "c"}, 1)
    0.0
    """
    return float(not _gold(relevant, k).isdisjoint(_first(retrieved, k)))


def reciprocal_rank(retrieved: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / rank of the first relevant id, 0.0 if there is none; its mean over questions is MRR.

    >>> reciprocal_rank(["b", "a", "c"], {"a", "c"})
    0.5
    """
    gold = _gold(relevant, 1)
    return next((1 / rank for rank, found in enumerate(dict.fromkeys(retrieved), start=1) if found in gold), 0.0)


def ndcg_at_k(retrieved: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the discounted gain of the first k, as a share of the best possible one.

    >>> round(ndcg_at_k(["b", "a", "c"], {"a", "c"}, 3), 10)
    0.6934264036
    """
    gold = _gold(relevant, k)
    gained = sum(_discount(place) for place, found in enumerate(_first(retrieved, k), start=1) if found in gold)
    return gained / _best(min(len(gold), k))


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


def _first(retrieved: Sequence[str], k: int) -> Iterable[str]:
    return islice(dict.fromkeys(retrieved), k)


@cache
def _discount(place: int) -> float:
    # Järvelin & Kekäläinen 2002, in trec_eval's form: the first place is divided by log2(2) = 1.
    return 1 / log2(place + 1)


@cache
def _best(count: int) -> float:
    return sum(map(_discount, range(1, count + 1)))


ANYTHING = -float_info.max
"""The threshold of answering whenever something came back."""

_SEVERAL = 2


def threshold_accuracy(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """Return the balanced accuracy of answering from a score on; None if there are not two questions of each kind.

    Every second question of each kind chooses the threshold that is used on the others, and the reverse; the result is
    the mean of both ways.

    >>> threshold_accuracy([0.9, 0.8, 0.7], [0.2, 0.1]), threshold_accuracy([0.5, 0.5], [0.5, 0.5])
    (1.0, 0.5)
    """
    if min(len(answerable), len(unanswerable)) < _SEVERAL:
        return None
    halves = [(answerable[start::2], unanswerable[start::2]) for start in (0, 1)]
    first, second = halves
    return (balanced_accuracy(*second, best_threshold(*first)) + balanced_accuracy(*first, best_threshold(*second))) / 2


def balanced_accuracy(answerable: Sequence[float], unanswerable: Sequence[float], threshold: float) -> float:
    """Return the mean of the shares that are right: answered from the threshold on, silent below it.

    >>> balanced_accuracy([0.9, 0.3], [0.1], 0.5)
    0.75
    """
    answered = sum(score >= threshold for score in answerable) / len(answerable)
    silent = sum(score < threshold for score in unanswerable) / len(unanswerable)
    return (answered + silent) / 2


def best_threshold(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """Return the threshold with the best balanced accuracy, the lowest of several: between two scores, or no threshold.

    >>> best_threshold([0.9, 0.5], [0.25])
    0.375
    """
    scores = sorted({*answerable, *unanswerable} - {-inf})
    between = [(low + high) / 2 for low, high in pairwise(scores)]
    choices = [-inf, ANYTHING, *between, inf]
    return max(choices, key=lambda threshold: balanced_accuracy(answerable, unanswerable, threshold))
