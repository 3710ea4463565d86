"""What the durable stores find alike: the nearest of a matrix, and the rows that hold most of some tokens; pure."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.vector_matrix import VectorMatrix
from memstory_reference.systems.layers.identity import microseconds
from memstory_reference.systems.layers.stores.store import ScoredRow


def nearest_of(matrix: VectorMatrix, query: NDArray[np.float32], limit: int, since: datetime | None) -> list[ScoredRow]:
    """Return the rows nearest to a vector of length 1, best first, ties by newer, then id."""
    found = matrix.nearest(query, limit, since=microseconds(since) if since else None)
    return [ScoredRow(id=one, moment=matrix.moment(one), score=score) for one, score in found]


def best_by_tokens(
    numbers: NDArray[np.int64], held: NDArray[np.int64], limit: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that hold the most tokens, of equals the later written; `numbers` are in order.

    >>> [found.tolist() for found in best_by_tokens(np.array([3, 5, 8]), np.array([1, 2, 1]), 2)]
    [[5, 8], [2, 1]]
    """
    if limit is None or len(numbers) <= limit:
        return numbers, held
    # Of sixteen bits each: numpy sorts those without comparing them.
    fewest_last = -np.minimum(held[::-1], np.iinfo(np.int16).max).astype(np.int16)
    best = len(held) - 1 - np.argsort(fewest_last, kind="stable")[:limit]
    return numbers[best], held[best]
