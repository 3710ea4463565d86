"""What the vector index should hold, and what it does not know yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.database_store import Database, parts
from memstory_reference.systems.pipeline.memory import MemoryChunk
from memstory_reference.systems.pipeline.stores.rows_store import MEMORY_COLUMNS, memory_of, vector_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A memory whose place in the vector index is to be brought up to date."""

    sequence: int
    owner: str
    id: str


class OutboxStore:
    """Blocking; reads what is to be copied and strikes off what was."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def changes(self) -> int:
        """Return a number that grows with every row that is written; does not block."""
        return self._db.changes

    def visible_ids(self, owner: str) -> list[str]:
        """Return what the vector index should hold: all but archived memories."""
        sql = "SELECT id FROM memories WHERE owner = ? AND (compressed = 0 OR summary IS NULL) ORDER BY id"
        return [row["id"] for row in self._db.execute(sql, (owner,))]

    def visible(self, owner: str, ids: Sequence[str]) -> list[tuple[MemoryChunk, NDArray[np.float32]]]:
        """Return those of these memories that the vector index should hold."""
        found = []
        for marks, part in parts(ids):
            sql = (
                f"SELECT {MEMORY_COLUMNS}, vector FROM memories WHERE owner = ? AND id IN ({marks}) "  # noqa: S608
                "AND (compressed = 0 OR summary IS NULL)"
            )
            found += [(memory_of(row), vector_of(row["vector"])) for row in self._db.execute(sql, (owner, *part))]
        return found

    def pending(self, limit: int) -> list[Pending]:
        """Return what the vector index does not know yet, oldest first."""
        rows = self._db.execute("SELECT sequence, owner, id FROM outbox ORDER BY sequence LIMIT ?", (limit,))
        return [Pending(sequence=sequence, owner=owner, id=identifier) for sequence, owner, identifier in rows]

    def waiting(self) -> int:
        """Count what the vector index does not know yet."""
        return int(self._db.execute("SELECT count(*) FROM outbox").fetchone()[0])

    def done(self, pending: Sequence[Pending]) -> None:
        """Strike off what the vector index has taken."""
        with self._db.transaction():
            self._db.executemany("DELETE FROM outbox WHERE sequence = ?", [(entry.sequence,) for entry in pending])
