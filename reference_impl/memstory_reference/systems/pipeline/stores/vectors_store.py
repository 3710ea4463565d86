"""The vectors that a recall may find, a matrix for each user: read once from SQLite, then kept in step with it.

Archived memories are not in it, so they can crowd nobody out (PF-9).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from memstory_reference.storage.database_store import Database, parts
from memstory_reference.storage.vector_matrix import VectorMatrix, usable
from memstory_reference.systems.pipeline.ingest.planning import Vector
from memstory_reference.systems.pipeline.stores.rows_store import vector_of

HELD_ROWS = 100_000
"""Vectors of all users in memory: 150 MB at 384 numbers."""

_VISIBLE = "SELECT id, vector FROM memories WHERE owner = ? AND (compressed = 0 OR summary IS NULL)"


class MemoryVectors:
    """Blocking work goes through the database's lane, where `changed` is called, too."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._matrices: OrderedDict[str, VectorMatrix] = OrderedDict()
        self._stale: dict[str, set[str]] = {}

    async def nearest(self, owner: str, vector: Vector, k: int) -> dict[str, float]:
        """Return the cosines of the k nearest memories by id, best first."""
        query = usable(vector)
        return {} if query is None else dict(await self._db.lane.run(lambda: self._matrix(owner).nearest(query, k)))

    async def count(self, owner: str) -> int:
        """Count the memories that can be found."""
        return await self._db.lane.run(lambda: len(self._matrix(owner)))

    async def rebuild(self, owner: str) -> int:
        """Read a user's vectors again; return how many there are."""
        await self._db.lane.run(self._matrices.pop, owner, None)
        return await self.count(owner)

    def changed(self, owner: str, ids: Iterable[str]) -> None:
        """Note memories that were written; blocking."""
        if owner in self._matrices:
            self._stale.setdefault(owner, set()).update(ids)

    def _matrix(self, owner: str) -> VectorMatrix:
        if owner not in self._matrices:
            self._stale.pop(owner, None)
            self._put(self._matrices.setdefault(owner, VectorMatrix()), _VISIBLE, (owner,))
        self._matrices.move_to_end(owner)
        self._catch_up(owner)
        while len(self._matrices) > 1 and sum(map(len, self._matrices.values())) > HELD_ROWS:
            self._matrices.popitem(last=False)
        return self._matrices[owner]

    def _catch_up(self, owner: str) -> None:
        matrix, stale = self._matrices[owner], sorted(self._stale.pop(owner, ()))
        for one in stale:
            matrix.discard(one)
        for marks, part in parts(stale):
            self._put(matrix, f"{_VISIBLE} AND id IN ({marks})", (owner, *part))

    def _put(self, matrix: VectorMatrix, sql: str, values: Sequence[object]) -> None:
        for identifier, blob in self._db.execute(sql, values):
            if (vector := usable(vector_of(blob))) is not None:
                matrix.put(identifier, vector)
