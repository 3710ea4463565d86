"""Can scores show that a memory knows nothing? The threshold is chosen on other questions than it is tested on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from sys import float_info

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
