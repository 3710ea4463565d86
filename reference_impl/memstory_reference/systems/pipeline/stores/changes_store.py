"""The smallest changes to a user's rows; the caller is alone with the user.

Each keeps the centroid equal to the mean of the rows, and notes which vectors have to be read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.sql_database import SqlDatabase
from memstory_reference.storage.vector_matrix import normalized_or_none
from memstory_reference.systems.pipeline.chunk import MemoryChunk
from memstory_reference.systems.pipeline.ingest.planning import Insertion
from memstory_reference.systems.pipeline.stores.rows_store import (
    check_dimension,
    dimension_of,
    is_countable,
    memory_values,
    preference_values,
    stamp,
    total_of,
    vector_of,
)
from memstory_reference.systems.pipeline.stores.tables_store import MEMORY_COLUMNS, PREFERENCE_COLUMNS
from memstory_reference.systems.pipeline.stores.vectors_store import MemoryVectors

Broken = tuple[str, str, str]
"""Table, id and content of a row whose vector cannot be compared."""

_INSERT = f"INSERT INTO memories ({MEMORY_COLUMNS}, vector) VALUES ({', '.join('?' * 17)})"  # noqa: S608  (constants)
_SET = f"INSERT INTO preferences ({PREFERENCE_COLUMNS}, vector) VALUES ({', '.join('?' * 14)})"  # noqa: S608


class TableWriter:
    """Writes rows of all tables; `memories` and `preferences` are the vectors that hear of it."""

    def __init__(self, database: SqlDatabase, memories: MemoryVectors, preferences: MemoryVectors) -> None:
        self._db = database
        self.memories = memories
        self.preferences = preferences

    @contextmanager
    def alone(self, owner: str) -> Iterator[None]:
        """Read and write, all or nothing, while nobody else writes for this user, in any process."""
        with self._db.transaction(owner), self.memories.new_version(owner), self.preferences.new_version(owner):
            yield

    def insert(self, owner: str, new: Sequence[Insertion]) -> None:
        """Write memories that are found by their vectors; StoreConflictError for one of another dimension."""
        if not new:
            return
        vectors = self._fitting([one.vector for one in new])
        rows = [
            (*memory_values(one.memory, one.content_hash), vector.tobytes())
            for one, vector in zip(new, vectors, strict=True)
        ]
        self._db.executemany(_INSERT, rows)
        self.shift(owner, np.sum(vectors, axis=0, dtype=np.float64), len(new))
        self.memories.note_changes(one.memory.id for one in new)

    def set(self, memory: MemoryChunk, content_hash: str, vector: NDArray[np.float32]) -> None:
        """Write a procedural memory; what its key held is history from now on, unless the memory is history itself."""
        (ready,) = self._fitting([vector])
        replaced = []
        if memory.replaced_by is None:
            replaced = self._db.execute(
                "UPDATE preferences SET replaced_by = ? "
                "WHERE owner = ? AND key = ? AND replaced_by IS NULL AND id <> ? RETURNING id",
                (memory.id, memory.user_id, memory.key, memory.id),
            ).fetchall()
        self._db.execute("DELETE FROM preferences WHERE owner = ? AND id = ?", (memory.user_id, memory.id))
        self._db.execute(_SET, (*preference_values(memory, content_hash), ready.tobytes()))
        self.preferences.note_changes([memory.id, *(row["id"] for row in replaced)])

    def remove(self, owner: str, identifier: str) -> None:
        """Delete a memory that is found by its vector, if it exists."""
        row = self._db.execute(
            "DELETE FROM memories WHERE owner = ? AND id = ? RETURNING vector", (owner, identifier)
        ).fetchone()
        if row:
            self.shift(owner, -vector_of(row["vector"]), -1)
            self.memories.note_changes([identifier])

    def unset(self, owner: str, identifier: str) -> bool:
        """Delete a procedural memory, False for none; what it replaced holds again, or is history of its successor."""
        row = self._db.execute(
            "DELETE FROM preferences WHERE owner = ? AND id = ? RETURNING replaced_by", (owner, identifier)
        ).fetchone()
        if row is None:
            return False
        replaced = self._db.execute(
            "SELECT id FROM preferences WHERE owner = ? AND replaced_by = ? ORDER BY updated_at DESC, row DESC",
            (owner, identifier),
        ).fetchall()
        heir = row["replaced_by"]
        for (one,) in replaced:
            self._db.execute("UPDATE preferences SET replaced_by = ? WHERE owner = ? AND id = ?", (heir, owner, one))
            heir = heir or one
        self.preferences.note_changes([identifier, *(one for (one,) in replaced)])
        return True

    def bump(self, memory: MemoryChunk) -> None:
        """Note that a memory's text came once more."""
        table = "memories" if memory.key is None else "preferences"
        self._db.execute(
            f"UPDATE {table} SET times_seen = ?, updated_at = ? WHERE owner = ? AND id = ?",  # noqa: S608
            (memory.times_seen, stamp(memory.updated_at), memory.user_id, memory.id),
        )

    def release(self, owner: str, summary: str | None) -> None:
        """Undo a compression, if there is one: its summary goes, the other originals are shown again."""
        if summary is None:
            return
        released = self._db.execute(
            "UPDATE memories SET compressed = 0, summary = NULL WHERE owner = ? AND summary = ? RETURNING id",
            (owner, summary),
        ).fetchall()
        self.memories.note_changes(row["id"] for row in released)
        self.remove(owner, summary)

    def cache(self, owner: str, vectors: Mapping[str, NDArray[np.float32]], keep: int) -> None:
        """Keep vectors of texts that are not stored, the latest `keep` of a user."""
        ready = self._fitting(list(vectors.values()))
        rows = [(owner, one, vector.tobytes()) for one, vector in zip(vectors, ready, strict=True)]
        self._db.executemany(
            "INSERT INTO embeddings (owner, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows
        )
        self._db.execute(
            "DELETE FROM embeddings WHERE owner = ? AND row <= "
            "(SELECT row FROM embeddings WHERE owner = ? ORDER BY row DESC LIMIT 1 OFFSET ?)",
            (owner, owner, keep),
        )

    def uncache(self, owner: str, identifier: str) -> None:
        """Forget the cached vector of a row's text."""
        self._db.execute(
            "DELETE FROM embeddings WHERE owner = ? AND hash IN ("
            "SELECT hash FROM memories WHERE owner = ? AND id = ? "
            "UNION ALL SELECT hash FROM preferences WHERE owner = ? AND id = ?)",
            (owner, *(owner, identifier) * 2),
        )

    def mend(self, owner: str, broken: Broken, vector: NDArray[np.float32]) -> None:
        """Replace by a good vector one that cannot be compared; the centroid is counted afterwards.

        A row that has another content by now stays as it is.
        """
        table, identifier, content = broken
        (ready,) = self._fitting([vector])
        self._db.execute(
            f"UPDATE {table} SET vector = ? WHERE owner = ? AND id = ? AND content = ?",  # noqa: S608
            (ready.tobytes(), owner, identifier, content),
        )
        (self.memories if table == "memories" else self.preferences).note_changes([identifier])

    def shift(self, owner: str, vector: NDArray[np.floating], step: int) -> None:
        """Move the sum behind the centroid, and its count by `step`; with the last vector it goes, rounding and all."""
        row = self._db.execute("SELECT total, count FROM centroids WHERE owner = ?", (owner,)).fetchone()
        total = total_of(row, dimension_of(self._db)) if row else np.zeros(len(vector))
        if total is None or len(total) != len(vector) or normalized_or_none(vector) is None:
            self.recount(owner)
        else:
            self._keep(owner, total + vector, (row["count"] if row else 0) + step)

    def recount(self, owner: str) -> None:
        """Make the sum behind the centroid again, of the vectors that can be compared."""
        held, total, count = dimension_of(self._db), None, 0
        for (blob,) in self._db.execute("SELECT vector FROM memories WHERE owner = ?", (owner,)):
            vector = vector_of(blob)
            if is_countable(vector, held):
                total = np.asarray(vector, np.float64) if total is None else total + vector
                count += 1
        self._keep(owner, total, count)

    def _keep(self, owner: str, total: NDArray[np.float64] | None, count: int) -> None:
        if total is None or count == 0:
            self._db.execute("DELETE FROM centroids WHERE owner = ?", (owner,))
        else:
            self._db.execute(
                "INSERT INTO centroids VALUES (?, ?, ?) "
                "ON CONFLICT (owner) DO UPDATE SET total = excluded.total, count = excluded.count",
                (owner, total.tobytes(), count),
            )

    def _fitting(self, vectors: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Return vectors as they are stored; the first one says how many numbers all have."""
        ready = [np.asarray(vector, np.float32) for vector in vectors]
        self._db.execute("INSERT INTO about VALUES ('dimension', ?) ON CONFLICT DO NOTHING", (str(len(ready[0])),))
        held = dimension_of(self._db)
        for vector in ready:
            check_dimension(held, vector)
        return ready
