"""What every vector index does alike: it checks what is given, and does its blocking work in the store's lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memstory_reference.adapters.vectors.vector_rows import (
    checked_ids,
    checked_records,
    checked_vector,
    checked_where,
    fill_vectors,
    page_of_ids,
)
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.lane import SerialThread


class OwnerRows(Protocol):
    """One owner's rows, blocking; they trust what they are given."""

    def put(self, records: Sequence[Record]) -> None:
        """Write rows that have vectors."""
        ...

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows; return the ids that existed."""
        ...

    def read(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, in the order of `ids`, with their vectors."""
        ...

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids of the rows that match, sorted."""
        ...

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        ...

    def count(self) -> int:
        """Count all rows."""
        ...


class CheckedIndex:
    """A `VectorIndex` over rows; `dimension` tells what the store holds, None before its first row."""

    def __init__(self, lane: SerialThread, rows: OwnerRows, dimension: Callable[[], int | None]) -> None:
        self._lane = lane
        self._rows = rows
        self._dimension = dimension

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows; one without a vector keeps the vector that it has."""
        await self._lane.run(self._write, list(records))

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        return await self._lane.run(self._plain, checked_ids(ids))

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        ready, plain = checked_vector(vector, self._dimension()), checked_where(where)
        return await self._lane.run(self._rows.nearest, ready, max(k, 0), plain)

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        plain = checked_where(where)
        return await self._lane.run(lambda: self._plain(page_of_ids(self._rows.select(plain), limit, offset)))

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        return await self._lane.run(self._rows.drop, checked_ids(ids))

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        plain = checked_where(where)
        return await self._lane.run(lambda: len(self._rows.select(plain)) if plain else self._rows.count())

    def _write(self, records: Sequence[Record]) -> None:
        ready = checked_records(records, self._dimension())
        if ready:
            bare = [row.id for row in ready if row.vector is None]
            old = {row.id: row.vector for row in self._rows.read(bare)}
            self._rows.put(fill_vectors(ready, old.get))

    def _plain(self, ids: Sequence[str]) -> Sequence[Record]:
        return [replace(row, vector=None) for row in self._rows.read(ids)]
