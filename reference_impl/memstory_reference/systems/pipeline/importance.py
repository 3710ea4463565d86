"""How important a text is: `0.6 * novelty + 0.4 * salience` (seed 002, P-07 to P-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NOVELTY_WEIGHT = 0.6
SALIENCE_WEIGHT = 0.4

ENTITY = 0.3
NUMBER = 0.2
PREFERENCE = 0.4
TECHNICAL = 0.1

# Decimal fractions have no exact binary form: 0.3 reached by two ways must be one and the same 0.3.
_DIGITS = 12
_NO_LENGTH = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a text holds; each counts once, however often it occurs."""

    has_entity: bool = False
    has_number: bool = False
    has_preference: bool = False
    is_technical: bool = False


def salience(signals: Signals) -> float:
    """Return the sum of the signals, at most 1.

    >>> salience(Signals(has_entity=True, has_number=True, has_preference=True, is_technical=True))
    1.0
    """
    weighed = (
        (signals.has_entity, ENTITY),
        (signals.has_number, NUMBER),
        (signals.has_preference, PREFERENCE),
        (signals.is_technical, TECHNICAL),
    )
    return min(1.0, round(sum(weight for is_there, weight in weighed if is_there), _DIGITS))


def importance(novelty: float, salience: float) -> float:
    """Return the importance, in [0, 1].

    >>> importance(0.3, 0.3), importance(1.0, 0.9)
    (0.3, 0.96)
    """
    return round(NOVELTY_WEIGHT * novelty + SALIENCE_WEIGHT * salience, _DIGITS)


def novelty(vector: NDArray[np.floating], centroid: NDArray[np.floating] | None) -> float:
    """Return the cosine distance of a vector and the mean of what is known, cut to [0, 1].

    Without a mean, or with one of no length (opposite vectors cancel out), everything is new (PF-4).
    """
    if centroid is None:
        return 1.0
    mean, new = np.asarray(centroid, np.float64), np.asarray(vector, np.float64)
    lengths = float(np.linalg.norm(mean)), float(np.linalg.norm(new))
    if min(lengths) < _NO_LENGTH:
        return 1.0
    return float(np.clip(1.0 - float(mean @ new) / (lengths[0] * lengths[1]), 0.0, 1.0))


def centroid(vectors: Sequence[Sequence[float]] | NDArray[np.floating]) -> NDArray[np.float64] | None:
    """Return the mean of unit vectors; None for none."""
    matrix = np.asarray(vectors, np.float64)
    return None if matrix.size == 0 else matrix.mean(axis=0)
