"""From what a vector index measures to the cosine that the systems speak of; pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

DIGITS = 6
"""Beyond them float32 only gives the noise of the order in which products were added; equal scores must tie."""


SLACK = 1e-5
"""More than float32 can be wrong by in the product of two unit vectors of a few thousand numbers."""


def cosine(value: float) -> float:
    """Return a measured cosine within [-1, 1] at six digits.

    >>> cosine(1.0000001), cosine(-0.1234567)
    (1.0, -0.123457)
    """
    return round(max(-1.0, min(1.0, float(value))), DIGITS)


def cosine_of_distance(distance: float) -> float:
    """Return the cosine behind a cosine distance, `1 - d`.

    >>> cosine_of_distance(0.25)
    0.75
    """
    return cosine(1.0 - distance)


def cosines(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a unit vector, at six digits.

    In float64, for the noise of float32 is wide enough to put two equal rows on two sides of a sixth digit.
    """
    scores: NDArray[np.float64] = np.clip(matrix.astype(np.float64) @ vector.astype(np.float64), -1.0, 1.0)
    return scores.round(DIGITS)


def among_best(matrix: NDArray[np.float32], vector: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Return the places of the rows that may belong to the k with the highest cosine: fast, and none too few."""
    if k >= len(matrix):
        return np.arange(len(matrix))
    rough = matrix @ vector
    return np.flatnonzero(rough >= np.partition(rough, -k)[-k] - SLACK)


def unit(vector: ArrayLike) -> NDArray[np.float32]:
    """Return a float32 copy of length 1; a vector of length 0, or one that is not finite, is a ValueError.

    >>> [round(float(part), 2) for part in unit([3.0, 4.0])]
    [0.6, 0.8]
    """
    wide = np.asarray(vector, dtype=np.float64)
    if wide.ndim != 1 or wide.size == 0:
        msg = f"a vector is a flat row of numbers, this one has the shape {wide.shape}"
        raise ValueError(msg)
    largest = float(np.max(np.abs(wide)))
    if not np.isfinite(largest) or largest == 0.0:
        msg = "a vector has finite numbers and a length above 0"
        raise ValueError(msg)
    scaled = wide / largest  # so that squaring neither overflows nor vanishes
    narrow: NDArray[np.float32] = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return narrow
