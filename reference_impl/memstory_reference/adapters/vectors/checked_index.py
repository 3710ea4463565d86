"""What every vector index does alike: it checks what is given, and does its blocking work in the store's lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol, TypeVar

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

T = TypeVar("T")


class OwnerRows(Protocol):
    """One owner's rows, blocking, to be used in their `lane`; they trust what they are given."""

    lane: SerialThread

    @property
    def dimension(self) -> int | None:
        """How many numbers each vector has; None before the first row of the store."""
        ...

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
    """A `VectorIndex` over the rows that are lent to it for each call."""

    def __init__(self, lend: Callable[[], AbstractAsyncContextManager[OwnerRows]]) -> None:
        self._lend = lend

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows; one without a vector keeps the vector that it has."""
        given = list(records)
        await self._run(lambda rows: _write(rows, given))

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        wanted = checked_ids(ids)
        return await self._run(lambda rows: _plain(rows, wanted))

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        plain = checked_where(where)
        return await self._run(lambda rows: rows.nearest(checked_vector(vector, rows.dimension), max(k, 0), plain))

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        plain = checked_where(where)
        return await self._run(lambda rows: _plain(rows, page_of_ids(rows.select(plain), limit, offset)))

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        wanted = checked_ids(ids)
        return await self._run(lambda rows: rows.drop(wanted))

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        plain = checked_where(where)
        return await self._run(lambda rows: len(rows.select(plain)) if plain else rows.count())

    async def _run(self, work: Callable[[OwnerRows], T]) -> T:
        async with self._lend() as rows:
            return await rows.lane.run(work, rows)


def _write(rows: OwnerRows, records: Sequence[Record]) -> None:
    ready = checked_records(records, rows.dimension)
    if ready:
        bare = [row.id for row in ready if row.vector is None]
        old = {row.id: row.vector for row in rows.read(bare)}
        rows.put(fill_vectors(ready, old.get))


def _plain(rows: OwnerRows, ids: Sequence[str]) -> Sequence[Record]:
    return [replace(row, vector=None) for row in rows.read(ids)]
