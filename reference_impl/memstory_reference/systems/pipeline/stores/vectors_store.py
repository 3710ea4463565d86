"""The vectors that a recall may find, a matrix for each user: read once from SQLite, then kept in step with it.

Archived memories and replaced preferences are not in it, so they can crowd nobody out (PF-9). A vector that cannot be
compared is set aside: its row is listed, counted and mended by a reindex, and harms no other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import chain

from memstory_reference.storage.database_store import Database, batches_of_values
from memstory_reference.storage.vector_matrix import HeldRows, VectorMatrix, normalized_or_none
from memstory_reference.systems.pipeline.ingest.planning import Vector
from memstory_reference.systems.pipeline.stores.rows_store import check_dimension, dimension_of, vector_of

_log = logging.getLogger(__name__)

OF_MEMORIES = "SELECT id, vector FROM memories WHERE owner = ? AND (compressed = 0 OR summary IS NULL)"
OF_PREFERENCES = "SELECT id, vector FROM preferences WHERE owner = ? AND replaced_by IS NULL"


class MemoryVectors:
    """Blocking work goes through the database's lane, where `changed` is called, too."""

    def __init__(self, database: Database, visible: str = OF_MEMORIES) -> None:
        """Hold the vectors of the rows that the query `visible` gives for an owner."""
        self._db = database
        self._visible = visible
        self._matrices = HeldRows[str, VectorMatrix](len)
        self._stale: dict[str, set[str]] = {}

    async def nearest(self, owner: str, vector: Vector, k: int) -> dict[str, float]:
        """Return the cosines of the k nearest memories by id, best first; StoreConflictError for a foreign vector."""
        query = normalized_or_none(vector)
        return {} if query is None else dict(await self._db.lane.run(self._nearest, owner, query, k))

    async def count(self, owner: str) -> int:
        """Count the memories that can be found."""
        return await self._db.lane.run(lambda: len(self._matrix(owner)))

    async def set_aside(self, owner: str) -> int:
        """Count the memories whose vectors cannot be compared."""
        return await self._db.lane.run(lambda: self._visible_rows(owner) - len(self._matrix(owner)))

    async def rebuild(self, owner: str) -> int:
        """Read a user's vectors again; return how many there are."""
        await self._db.lane.run(self._matrices.drop, owner)
        return await self.count(owner)

    def note_changes(self, owner: str, ids: Iterable[str]) -> None:
        """Note memories that were written; blocking."""
        if owner in self._matrices:
            self._stale.setdefault(owner, set()).update(ids)

    def _nearest(self, owner: str, query: Vector, k: int) -> list[tuple[str, float]]:
        check_dimension(dimension_of(self._db), query)
        return self._matrix(owner).nearest(query, k)

    def _visible_rows(self, owner: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM ({self._visible})", (owner,)).fetchone()[0])  # noqa: S608

    def _matrix(self, owner: str) -> VectorMatrix:
        matrix = self._matrices.get(owner)
        if matrix is None:
            self._stale.pop(owner, None)
            matrix = VectorMatrix()
            self._put(matrix, self._visible, (owner,))
            if left := self._visible_rows(owner) - len(matrix):
                _log.warning("%d memories cannot be found by meaning until their user is reindexed", left)
        self._catch_up(matrix, owner)
        return self._matrices.keep(owner, matrix)

    def _catch_up(self, matrix: VectorMatrix, owner: str) -> None:
        stale = sorted(self._stale.pop(owner, ()))
        for one in stale:
            matrix.discard(one)
        for marks, part in batches_of_values(stale):
            self._put(matrix, f"{self._visible} AND id IN ({marks})", (owner, *part))

    def _put(self, matrix: VectorMatrix, sql: str, values: Sequence[object]) -> None:
        held = dimension_of(self._db)
        for identifier, blob in chain.from_iterable(self._db.batches(sql, values)):
            vector = normalized_or_none(vector_of(blob))
            if vector is not None and len(vector) == held and isinstance(identifier, str):
                matrix.put(identifier, vector)
