"""One owner's rows in Chroma: searched exactly in memory while they are few, by Chroma's index beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.adapters.vectors import chroma_health
from memstory_reference.adapters.vectors.chroma_catalog import Catalog
from memstory_reference.adapters.vectors.chroma_lane import Lane
from memstory_reference.adapters.vectors.chroma_rows import ChromaRows, without_vector
from memstory_reference.adapters.vectors.memory_index import ExactRows
from memstory_reference.adapters.vectors.vector_rows import (
    checked_ids,
    checked_records,
    checked_vector,
    checked_where,
    page,
    with_vectors,
)
from memstory_reference.ports import Match, Primitive, Record

T = TypeVar("T")

CHURN = 1_000
"""Rows replaced or deleted after which Chroma's index is checked anew: that is what puts rows out of reach."""


class Mirrors:
    """Which indexes are held in memory: each up to `rows_each` rows, all up to `rows_in_all`."""

    def __init__(self, *, rows_each: int, rows_in_all: int) -> None:
        self.rows_each = rows_each
        self._rows_in_all = rows_in_all
        self._held: dict[ChromaIndex, None] = {}

    def use(self, index: ChromaIndex) -> None:
        """Note a use, and let go of others until the rows fit."""
        self._held.pop(index, None)
        self._held[index] = None
        while len(self._held) > 1 and sum(one.mirrored for one in self._held) > self._rows_in_all:
            oldest = next(iter(self._held))
            oldest.forget_mirror()
            del self._held[oldest]


class ChromaIndex:
    """A `VectorIndex` whose collection is made by the first write. All blocking work goes through the store's lane."""

    def __init__(self, *, lane: Lane, catalog: Catalog, mirrors: Mirrors, collection: str, owner: str) -> None:
        self._lane = lane
        self._catalog = catalog
        self._mirrors = mirrors
        self._key = (collection, owner)
        self._rows: ChromaRows | None = None
        self._mirror: ExactRows | None = None
        self._churn = 0

    @property
    def mirrored(self) -> int:
        """The number of rows held in memory."""
        return len(self._mirror) if self._mirror is not None else 0

    def forget_mirror(self) -> None:
        """Free the memory; the next query reads the rows again."""
        self._mirror = None

    def open(self) -> ChromaRows | None:
        """Find the rows and, the first time, check them; blocking, to be run in the lane."""
        if self._rows is None:
            found = self._catalog.find(*self._key)
            self._rows = None if found is None else chroma_health.checked(self._catalog, found)
        return self._rows

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows; one without a vector keeps the vector that it has."""
        given = list(records)
        await self._lane.run(lambda: self._write(given))

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        wanted = checked_ids(ids)
        return await self._with_rows((), lambda rows: _plain(rows, wanted))

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        ready, plain = checked_vector(vector, self._catalog.dimension), checked_where(where)
        return await self._with_rows((), lambda rows: self._searched(rows).nearest(ready, k, plain))

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        plain = checked_where(where)
        page((), limit, offset)  # a wrong number is refused even where there are no rows
        return await self._with_rows((), lambda rows: _plain(rows, page(rows.select(plain), limit, offset)))

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        wanted = checked_ids(ids)
        return await self._with_rows((), lambda rows: self._drop(rows, wanted))

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        plain = checked_where(where)
        return await self._with_rows(0, lambda rows: len(rows.select(plain)) if plain else rows.count())

    async def _with_rows(self, nothing: T, work: Callable[[ChromaRows], T]) -> T:
        """Return what `work` makes of the rows, or `nothing` if the owner never wrote."""

        def found() -> T:
            rows = self.open()
            return nothing if rows is None else work(rows)

        return await self._lane.run(found)

    def _write(self, records: Sequence[Record]) -> None:
        ready = checked_records(records, self._catalog.dimension)
        if not ready:
            return
        rows = self.open()
        old = rows.read([record.id for record in ready]) if rows else {}
        ready = with_vectors(ready, lambda one: _vector(old.get(one)))
        rows = self._rows = rows or self._catalog.create(*self._key, len(np.asarray(ready[0].vector)))
        with self._mirror_in_doubt() as mirror:
            rows.put(ready, old)
            self._churn += len(old)
            if mirror is not None:
                mirror.put(ready)

    def _drop(self, rows: ChromaRows, ids: Sequence[str]) -> Sequence[str]:
        with self._mirror_in_doubt() as mirror:
            gone = rows.drop(ids)
            self._churn += len(gone)
            if mirror is not None:
                mirror.drop(gone)
        return gone

    @contextmanager
    def _mirror_in_doubt(self) -> Iterator[ExactRows | None]:
        """Give the mirror up unless the whole write succeeds: part of it may stand in Chroma."""
        mirror, self._mirror = self._mirror, None
        yield mirror
        self._mirror = mirror

    def _searched(self, rows: ChromaRows) -> ExactRows | ChromaRows:
        if rows.count() > self._mirrors.rows_each:
            self._mirror = None
            return self._sound(rows)
        if self._mirror is None:
            self._mirror = ExactRows()
            self._mirror.put(list(rows.read(rows.select({})).values()))
        self._mirrors.use(self)
        return self._mirror

    def _sound(self, rows: ChromaRows) -> ChromaRows:
        if self._churn >= CHURN:
            self._churn = 0
            self._rows = chroma_health.checked(self._catalog, rows)
        return self._rows or rows


def _plain(rows: ChromaRows, ids: Sequence[str]) -> Sequence[Record]:
    return [without_vector(row) for row in rows.read(ids).values()]


def _vector(record: Record | None) -> NDArray[np.float32] | None:
    return None if record is None or record.vector is None else np.asarray(record.vector, dtype=np.float32)
