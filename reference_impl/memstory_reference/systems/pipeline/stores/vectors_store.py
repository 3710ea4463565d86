"""The vectors that a recall may find, a matrix for each user: read once from the database, then kept in step with it.

Archived memories and replaced preferences are not in it, so they can crowd nobody out (PF-9). A vector that cannot be
compared is set aside: its row is listed, counted and mended by a reindex, and harms no other.

Other processes may write to the database. Each write gives the user's rows a new version, by which a process that holds
an earlier one reads them all again.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.database_store import batches_of_values
from memstory_reference.storage.sql_database import SqlDatabase
from memstory_reference.storage.vector_matrix import HeldRows, VectorMatrix, normalized_or_none
from memstory_reference.systems.pipeline.chunk import Vector

_log = logging.getLogger(__name__)

_VISIBLE = {
    "memories": "SELECT id, vector FROM memories WHERE owner = ? AND (compressed = 0 OR summary IS NULL)",
    "preferences": "SELECT id, vector FROM preferences WHERE owner = ? AND replaced_by IS NULL",
}


@dataclass(slots=True)
class _HeldVectors:
    """A user's vectors of one version but for those that are `stale`; rows `aside` have none that can be compared."""

    version: object
    matrix: VectorMatrix = field(default_factory=VectorMatrix)
    aside: set[object] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.matrix)


class MemoryVectors:
    """Blocking work goes through the database's lane, where `note_changes` is called, too."""

    def __init__(self, database: SqlDatabase, table: str) -> None:
        """Hold the vectors of the rows of `table`, memories or preferences, that a recall may find."""
        self._db = database
        self._table = table
        self._visible = _VISIBLE[table]
        self._held = HeldRows[str, _HeldVectors](len)
        self._changed: set[str] = set()

    async def nearest(self, owner: str, vector: Vector, k: int) -> dict[str, float]:
        """Return the cosines of the k nearest memories by id, best first; StoreConflictError for a foreign vector."""
        query = normalized_or_none(vector)
        return {} if query is None else dict(await self._db.lane.run(self._nearest, owner, query, k))

    async def count(self, owner: str) -> int:
        """Count the memories that can be found."""
        return await self._db.lane.run(lambda: len(self._of(owner)))

    async def set_aside(self, owner: str) -> int:
        """Count the memories whose vectors cannot be compared."""
        return await self._db.lane.run(lambda: len(self._of(owner).aside))

    async def rebuild(self, owner: str) -> int:
        """Read a user's vectors again; return how many there are."""
        await self._db.lane.run(self._held.drop, owner)
        return await self.count(owner)

    @contextmanager
    def new_version(self, owner: str) -> Iterator[None]:
        """Give what is noted within this part of a transaction a new version; blocking."""
        before = self._version(owner)
        self._changed.clear()
        yield
        if not self._changed:
            return
        # Drawn and not counted: a number would come again once the user's last row is gone, and the version with it.
        version: str | None = secrets.token_hex(8)
        written = self._db.execute(
            f"INSERT INTO versions SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM {self._table} WHERE owner = ?) "  # noqa: S608
            "ON CONFLICT (owner, name) DO UPDATE SET version = excluded.version",
            (owner, self._table, version, owner),
        )
        if not written.rowcount:
            self._db.execute("DELETE FROM versions WHERE owner = ? AND name = ?", (owner, self._table))
            version = None
        held = self._held.get(owner)
        if held is not None:
            held.stale |= self._changed
            if held.version == before:
                held.version = version

    def note_changes(self, ids: Iterable[str]) -> None:
        """Note memories that were written, of the user of the transaction; blocking."""
        self._changed.update(ids)

    def _nearest(self, owner: str, query: Vector, k: int) -> list[tuple[str, float]]:
        check_dimension(dimension_of(self._db), query)
        return self._of(owner).matrix.nearest(query, k)

    def _version(self, owner: str) -> object:
        rows = self._db.rows("SELECT version FROM versions WHERE owner = ? AND name = ?", (owner, self._table))
        return rows[0][0] if rows else None

    def _of(self, owner: str) -> _HeldVectors:
        # Asked before the rows: what is written in between is then read once more.
        held, version = self._held.get(owner), self._version(owner)
        if held is not None and held.version == version:
            self._catch_up(held, owner)
        else:
            is_first, held = held is None, _HeldVectors(version)
            self._put(held, self._visible, (owner,))
            if is_first and held.aside:
                _log.warning("%d memories cannot be found by meaning until their user is reindexed", len(held.aside))
        return self._held.keep(owner, held)

    def _catch_up(self, held: _HeldVectors, owner: str) -> None:
        stale, held.stale = sorted(held.stale), set()
        held.aside.difference_update(stale)
        for one in stale:
            held.matrix.discard(one)
        for marks, part in batches_of_values(stale):
            self._put(held, f"{self._visible} AND id IN ({marks})", (owner, *part))

    def _put(self, held: _HeldVectors, sql: str, values: Sequence[object]) -> None:
        dimension = dimension_of(self._db)
        for identifier, blob in chain.from_iterable(self._db.batches(sql, values)):
            vector = normalized_or_none(vector_of(blob))
            if vector is not None and len(vector) == dimension and isinstance(identifier, str):
                held.matrix.put(identifier, vector)
            else:
                held.aside.add(identifier)


def dimension_of(database: SqlDatabase) -> int | None:
    """Return how many numbers each vector of the store has; None before the first."""
    row = database.execute("SELECT value FROM about WHERE name = 'dimension'").fetchone()
    if row and not row["value"].isdecimal():
        raise UnavailableError(
            f"{database.place} is damaged: its vectors have {row['value']!r:.40} numbers; restore a backup, "
            "or use another folder"
        )
    return int(row["value"]) if row else None


def check_dimension(held: int | None, vector: Vector) -> None:
    """Raise StoreConflictError for a vector that cannot be compared with those of the store."""
    if held not in (None, len(vector)):
        raise StoreConflictError(
            f"the store holds vectors of {held} numbers, not {len(vector)}: another model answers under the same name. "
            "Use the model that the store was made with, or another folder"
        )


def vector_of(blob: bytes | None) -> Vector:
    """Return a stored vector; one of no numbers where there is none, or the file was damaged."""
    return np.frombuffer(blob if blob and len(blob) % 4 == 0 else b"", np.float32)


def is_countable(vector: Vector, held: int | None) -> bool:
    """Say whether a stored vector can be compared with the others."""
    return len(vector) == held and normalized_or_none(vector) is not None
