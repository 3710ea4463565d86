"""Vector rows in memory, searched exactly: a store of its own, and the mirror of Chroma's small indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memstory_reference.adapters.vectors.similarity import among_best, cosines
from memstory_reference.adapters.vectors.vector_rows import (
    checked_ids,
    checked_name,
    checked_records,
    checked_vector,
    checked_where,
    page,
    same_as,
    with_vectors,
)
from memstory_reference.errors import UnavailableError
from memstory_reference.ports import Match, Primitive, Record


class ExactRows:
    """Rows and their unit vectors in one growing matrix; it trusts what `vector_rows` has checked."""

    def __init__(self) -> None:
        self._rows: list[Record] = []
        self._places: dict[str, int] = {}
        self._matrix: NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        """Count all rows."""
        return len(self._rows)

    def put(self, records: Sequence[Record]) -> None:
        """Write rows that all have a vector."""
        for record in records:
            vector, row = np.asarray(record.vector, dtype=np.float32), replace(record, vector=None)
            place = self._places.setdefault(record.id, len(self._rows))
            if place == len(self._rows):
                self._rows.append(row)
                self._make_room(len(vector))
            self._rows[place] = row
            self._matrix[place] = vector

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows; the last row moves into each hole."""
        gone = [one for one in ids if one in self._places]
        for one in gone:
            place, last = self._places.pop(one), self._rows.pop()
            if last.id != one:
                self._rows[place], self._places[last.id] = last, place
                self._matrix[place] = self._matrix[len(self._rows)]
        return gone

    def get(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, without vectors."""
        return [self._rows[self._places[one]] for one in ids if one in self._places]

    def vector(self, row_id: str) -> NDArray[np.float32] | None:
        """Return a copy of a row's vector, or None."""
        place = self._places.get(row_id)
        return None if place is None else self._matrix[place].copy()

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids of the rows that match, sorted."""
        return sorted(self._rows[place].id for place in self._matching(where))

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        places = np.array(self._matching(where), dtype=np.intp)
        if k <= 0 or not len(places):
            return []
        matrix = self._matrix[: len(self._rows)]
        if where:
            matrix = matrix[places]
        near = among_best(matrix, vector, k)
        scores = cosines(matrix[near], vector)
        found = [
            Match(record=self._rows[place], similarity=float(score))
            for place, score in zip(places[near], scores, strict=True)
        ]
        return sorted(found, key=lambda match: (-match.similarity, match.record.id))[:k]

    def _matching(self, where: Mapping[str, Primitive]) -> Sequence[int]:
        places: Sequence[int] = range(len(self._rows))
        for key, value in where.items():
            is_same = same_as(value)
            places = [place for place in places if is_same(self._rows[place].metadata.get(key))]
        return places

    def _make_room(self, dimension: int) -> None:
        if len(self._rows) > len(self._matrix):
            grown = np.empty((max(16, 2 * len(self._matrix)), dimension), dtype=np.float32)
            if len(self._matrix):
                grown[: len(self._matrix)] = self._matrix
            self._matrix = grown


class InMemoryVectorStore:
    """A `VectorStore` that forgets with its process; `dimension` is learnt from the first row if None."""

    def __init__(self, *, model: str, dimension: int | None = None) -> None:
        self.model = model
        self.dimension = dimension
        self._indexes: dict[tuple[str, str], InMemoryIndex] = {}
        self._is_open = True

    async def index(self, collection: str, owner: str) -> InMemoryIndex:
        """Open the index of `owner`."""
        self.check_open()
        key = (checked_name("collection", collection), checked_name("owner", owner))
        return self._indexes.setdefault(key, InMemoryIndex(self))

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        self.check_open()
        return sorted(owner for (name, owner), index in self._indexes.items() if name == collection and index.is_made)

    async def close(self) -> None:
        """Refuse all further work."""
        self._is_open = False

    def check_open(self) -> None:
        """Raise if the store was closed."""
        if not self._is_open:
            raise UnavailableError("the vector store in memory was closed; open a new one")


class InMemoryIndex:
    """One owner's rows in memory."""

    def __init__(self, store: InMemoryVectorStore) -> None:
        self._store = store
        self._rows = ExactRows()
        self.is_made = False

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows; one without a vector keeps the vector that it has."""
        self._store.check_open()
        rows = with_vectors(checked_records(records, self._store.dimension), self._rows.vector)
        if rows:
            self._store.dimension = self._store.dimension or len(np.asarray(rows[0].vector))
            self.is_made = True
            self._rows.put(rows)

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        self._store.check_open()
        return self._rows.get(checked_ids(ids))

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        self._store.check_open()
        return self._rows.nearest(checked_vector(vector, self._store.dimension), k, checked_where(where))

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        self._store.check_open()
        return self._rows.get(page(self._rows.select(checked_where(where)), limit, offset))

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        self._store.check_open()
        return self._rows.drop(checked_ids(ids))

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        self._store.check_open()
        return len(self._rows.select(checked_where(where)))
