"""The vectors of one namespace as a matrix: exact nearest rows in a millisecond at ten thousand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_CAPACITY = 16


def usable(vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Return a vector at length 1; None for one that has no direction, whose cosine would be no number (CF-5)."""
    if vector is None:
        return None
    row = np.asarray(vector, np.float32).reshape(-1)
    length = float(np.linalg.norm(row))
    return row / np.float32(length) if np.isfinite(length) and length > 0 else None


class VectorMatrix:
    """Rows by id, each with its vector and the moment of its creation; all vectors have one dimension."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._rows = np.zeros((0, 0), np.float32)
        self._moments = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def put(self, identifier: str, vector: NDArray[np.float32], created_at: datetime) -> None:
        """Add or replace a row."""
        if identifier not in self._places:
            self._grow(len(vector))
            self._places[identifier] = len(self._ids)
            self._ids.append(identifier)
        place = self._places[identifier]
        self._rows[place] = vector
        self._moments[place] = microseconds(created_at)

    def discard(self, identifier: str) -> None:
        """Take a row out, if it is there; the last one takes its place."""
        place = self._places.pop(identifier, None)
        if place is None:
            return
        last = self._ids.pop()
        if last != identifier:
            self._ids[place] = last
            self._places[last] = place
            self._rows[place] = self._rows[len(self._ids)]
            self._moments[place] = self._moments[len(self._ids)]

    def nearest(
        self, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[tuple[str, float]]:
        """Return ids with their cosines, best first, ties by newer, then id."""
        query, count = usable(vector), len(self._ids)
        if query is None or not count or limit <= 0:
            return []
        cosines = self._rows[:count] @ query
        chosen = np.arange(count)
        if since is not None:
            chosen = chosen[self._moments[:count] >= microseconds(since)]
        if len(chosen) > limit:
            # Ties with the last place stay in, so that the order below decides between them.
            floor = np.partition(cosines[chosen], -limit)[-limit]
            chosen = chosen[cosines[chosen] >= floor]
        ranked = sorted(
            ((-float(cosines[place]), -int(self._moments[place]), self._ids[place]) for place in chosen),
        )
        return [(identifier, max(-1.0, min(1.0, -negative))) for negative, _, identifier in ranked[:limit]]

    def _grow(self, dimension: int) -> None:
        capacity, count = len(self._rows), len(self._ids)
        if count < capacity:
            return
        rows = np.zeros((max(_FIRST_CAPACITY, 2 * capacity), dimension), np.float32)
        moments = np.zeros(len(rows), np.int64)
        if count:
            rows[:count], moments[:count] = self._rows[:count], self._moments[:count]
        self._rows, self._moments = rows, moments


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
