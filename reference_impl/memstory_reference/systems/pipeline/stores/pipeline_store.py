"""The pipeline's memory in SQLite: the truth of rows, preferences, cached embeddings and centroids.

Each write is one transaction that also moves the centroid, so a process that is killed leaves no half-known memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.database_store import Database, parts
from memstory_reference.storage.vector_matrix import products
from memstory_reference.systems.pipeline.ingest.planning import Insertion, Known, Setting, Vector, Write, twin_of
from memstory_reference.systems.pipeline.memory import MemoryChunk, MemoryType
from memstory_reference.systems.pipeline.stores.changes_store import Rows
from memstory_reference.systems.pipeline.stores.rows_store import (
    MEMORY_COLUMNS,
    Admission,
    condition,
    memory_of,
    preference_of,
    vector_of,
)
from memstory_reference.systems.pipeline.stores.vectors_store import MemoryVectors

SCANNED_ROWS = 2_000
"""Vectors held at once while rows are compared one by one: 3 MB at 384 numbers."""


class PipelineStore:
    """Blocking; one connection, used by one thread at a time."""

    def __init__(self, database: Database, vectors: MemoryVectors) -> None:
        self._db = database
        self._rows = Rows(database, vectors)
        self._vectors = vectors

    def embeddings(self, owner: str, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that are known of these contents, stored or cached."""
        found: dict[str, Vector] = {}
        for table in ("embeddings", "memories"):
            for marks, part in parts(hashes):
                sql = f"SELECT hash, vector FROM {table} WHERE owner = ? AND hash IN ({marks})"  # noqa: S608
                found |= {row["hash"]: vector_of(row["vector"]) for row in self._db.execute(sql, (owner, *part))}
        return found

    def known(self, owner: str, hashes: Sequence[str] = (), keys: Sequence[str] = ()) -> Known:
        """Return what matters to new texts of these hashes and keys; archived memories are nobody's twin (PF-6)."""
        known = Known()
        row = self._db.execute("SELECT total, count FROM centroids WHERE owner = ?", (owner,)).fetchone()
        if row:
            known.total, known.count = np.frombuffer(row["total"], np.float64), row["count"]
        for marks, part in parts(hashes):
            sql = (
                f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND hash IN ({marks}) "  # noqa: S608
                "AND (compressed = 0 OR summary IS NULL) AND compression_source = 0"
            )
            for found in self._db.execute(sql, (owner, *part)):
                memory = memory_of(found)
                known.twins[twin_of(memory, found["hash"])] = memory
        for marks, part in parts(keys):
            sql = f"SELECT * FROM preferences WHERE owner = ? AND key IN ({marks})"  # noqa: S608
            for found in self._db.execute(sql, (owner, *part)):
                known.preferences[found["key"]] = (preference_of(found), found["hash"])
        return known

    def write(self, owner: str, writes: Iterable[Write], cached: Mapping[str, Vector], keep: int) -> None:
        """Carry out a plan in one transaction, and cache the vectors that it does not store, the latest `keep`."""
        with self._db.transaction():
            unstored = dict(cached)
            for write in writes:
                if isinstance(write, Insertion):
                    self._rows.insert(write.memory, write.content_hash, write.vector)
                    unstored.pop(write.content_hash, None)
                elif isinstance(write, Setting):
                    self._rows.set(write.memory, write.content_hash)
                else:
                    self._rows.bump(write.memory)
            if unstored:
                self._rows.cache(owner, unstored, keep)

    def put(self, owner: str, rows: Sequence[Insertion | Setting]) -> None:
        """Write rows as they are; one of an id or key that exists is replaced. Summaries are tied to their sessions."""
        with self._db.transaction():
            for row in rows:
                if isinstance(row, Setting):
                    self._rows.set(row.memory, row.content_hash)
                else:
                    self._rows.remove(owner, row.memory.id)
                    self._rows.insert(row.memory, row.content_hash, row.vector)
            tied = self._db.execute(
                "UPDATE memories SET summary = (SELECT s.id FROM memories AS s WHERE s.owner = memories.owner AND "
                "s.compression_source = 1 AND s.source_session = memories.session "
                "ORDER BY s.created_at DESC, s.id LIMIT 1) "
                "WHERE owner = ? AND compressed = 1 AND summary IS NULL RETURNING id",
                (owner,),
            ).fetchall()
            self._vectors.changed(owner, [row["id"] for row in tied])

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryChunk]:
        """Return the memories that exist, in the order of `ids`."""
        found: dict[str, MemoryChunk] = {}
        for marks, part in parts(ids):
            for sql, made in (
                (f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND id IN ({marks})", memory_of),  # noqa: S608
                (f"SELECT * FROM preferences WHERE owner = ? AND id IN ({marks})", preference_of),  # noqa: S608
            ):
                found |= {row["id"]: made(row) for row in self._db.execute(sql, (owner, *part))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def preference(self, owner: str, key: str) -> MemoryChunk | None:
        """Return the procedural memory of a key."""
        row = self._db.execute("SELECT * FROM preferences WHERE owner = ? AND key = ?", (owner, key)).fetchone()
        return preference_of(row) if row else None

    def preferences(self, owner: str, limit: int | None = None) -> list[MemoryChunk]:
        """Return procedural memories, the newest first."""
        rows = self._db.execute(
            "SELECT * FROM preferences WHERE owner = ? ORDER BY updated_at DESC, row DESC LIMIT ?",
            (owner, -1 if limit is None else limit),
        )
        return [preference_of(row) for row in rows]

    def admitted(self, owner: str, ids: Sequence[str], admission: Admission) -> dict[str, MemoryChunk]:
        """Return, by id, those of these memories that a recall may return."""
        sql, parameters = condition(admission, is_by_id=True)
        found: dict[str, MemoryChunk] = {}
        for marks, part in parts(ids):
            query = f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND id IN ({marks}) AND {sql}"  # noqa: S608
            found |= {row["id"]: memory_of(row) for row in self._db.execute(query, (owner, *part, *parameters))}
        return found

    def nearest(self, owner: str, vector: Vector, k: int, admission: Admission) -> dict[str, float]:
        """Return the k nearest of all memories that a recall may return, by cosine; exact, row by row."""
        sql, parameters = condition(admission)
        query = f"SELECT id, vector FROM memories WHERE owner = ? AND {sql}"  # noqa: S608
        cursor = self._db.execute(query, (owner, *parameters))
        cursor.row_factory = None  # plain tuples: there are many
        best: list[tuple[float, str]] = []
        while rows := cursor.fetchmany(SCANNED_ROWS):
            matrix = np.frombuffer(b"".join(blob for _, blob in rows), np.float32).reshape(len(rows), -1)
            scores = np.clip(products(matrix, np.asarray(vector, np.float32)), -1.0, 1.0)
            worst = np.partition(scores, -k)[-k] if k < len(rows) else -1.0
            best += [(-float(scores[place]), rows[place][0]) for place in np.flatnonzero(scores >= worst)]
            best = sorted(best)[:k]
        return {identifier: -score for score, identifier in best}

    def recent(self, owner: str, kinds: Sequence[MemoryType], limit: int | None) -> list[MemoryChunk]:
        """Return memories of all sorts, archived ones too, newest first."""
        marks = ", ".join("?" for _ in kinds)
        rows = self._db.execute(
            f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND kind IN ({marks}) "  # noqa: S608
            "ORDER BY created_at DESC, row DESC LIMIT ?",
            (owner, *map(str, kinds), -1 if limit is None else limit),
        )
        found = [memory_of(row) for row in rows]
        if MemoryType.PROCEDURAL in kinds:
            found += self.preferences(owner, limit)
            found.sort(key=lambda memory: memory.created_at, reverse=True)
        return found if limit is None else found[:limit]

    def change(self, old: MemoryChunk, new: MemoryChunk, content_hash: str, vector: Vector) -> None:
        """Put `new` in the place of `old`; a summary that was made of `old` goes, for it would keep the old words."""
        with self._db.transaction():
            self._rows.release(old.user_id, old)
            if old.key is not None:
                self._rows.set(new, content_hash)
            else:
                self._rows.remove(old.user_id, old.id)
                self._rows.insert(new, content_hash, vector)

    def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Forget memories with their cached embeddings and the summaries made of them; return the ids that existed."""
        deleted = []
        with self._db.transaction():
            for memory in self.get(owner, ids):
                self._rows.uncache("memories" if memory.key is None else "preferences", owner, memory.id)
                self._rows.release(owner, memory)
                if memory.key is None:
                    self._rows.remove(owner, memory.id)
                else:
                    self._db.execute("DELETE FROM preferences WHERE owner = ? AND id = ?", (owner, memory.id))
                deleted.append(memory.id)
        return deleted

    def forget(self, owner: str) -> int:
        """Forget a user, with everything that was learnt from the user's texts; return how many memories that were."""
        with self._db.transaction():
            ids = [row["id"] for row in self._db.execute("SELECT id FROM memories WHERE owner = ?", (owner,))]
            kept = len(self.preferences(owner))
            for table in ("memories", "preferences", "embeddings", "centroids"):
                self._db.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608
            self._vectors.changed(owner, ids)
        self._db.forget_log()
        return len(ids) + kept

    def vectors(self, owner: str) -> NDArray[np.float32]:
        """Return every stored vector of a user; (n, d), or nothing."""
        rows = self._db.execute("SELECT vector FROM memories WHERE owner = ? ORDER BY row", (owner,)).fetchall()
        return np.array([vector_of(row["vector"]) for row in rows], np.float32)

    def overview(self, owner: str, limit: int) -> tuple[list[MemoryChunk], bool]:
        """Return the newest procedural memories, and whether there is any other memory."""
        other = self._db.execute("SELECT 1 FROM memories WHERE owner = ? LIMIT 1", (owner,)).fetchone()
        return self.preferences(owner, limit), other is not None

    def count(self, owner: str) -> dict[str, int]:
        """Count a user's rows."""
        kinds = {str(kind): 0 for kind in MemoryType}
        sql = "SELECT kind, count(*) FROM memories WHERE owner = ? GROUP BY kind"
        kinds |= {row[0]: row[1] for row in self._db.execute(sql, (owner,))}

        def number(sql: str) -> int:
            return int(self._db.execute(sql, (owner,)).fetchone()[0])

        compressed = "SELECT count(*) FROM memories WHERE owner = ? AND compressed = 1"
        sessions = (
            "SELECT count(DISTINCT session) FROM memories WHERE owner = ? AND kind = 'episodic' AND compressed = 0"
        )
        return {
            **kinds,
            "procedural": number("SELECT count(*) FROM preferences WHERE owner = ?"),
            "compressed": number(compressed),
            "sessions": number(sessions),
            "cached": number("SELECT count(*) FROM embeddings WHERE owner = ?"),
        }
