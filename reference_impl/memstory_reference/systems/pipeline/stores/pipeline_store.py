"""The pipeline's memory in SQLite or Postgres: the truth of rows, preferences, cached embeddings and centroids.

Each write is one transaction that also moves the centroid, so a process that is killed leaves no half-known memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.database_store import batches_of_values
from memstory_reference.storage.sql_database import EVERY, SqlDatabase
from memstory_reference.storage.vector_matrix import products
from memstory_reference.systems.pipeline.chunk import ChunkReceipt, ChunkType, MemoryChunk
from memstory_reference.systems.pipeline.importance import centroid
from memstory_reference.systems.pipeline.ingest.chunking import Chunk
from memstory_reference.systems.pipeline.ingest.planning import (
    Bump,
    Insertion,
    PreferenceChange,
    UserMemories,
    Vector,
    Write,
    twin_of,
)
from memstory_reference.systems.pipeline.stores.changes_store import Broken, TableWriter
from memstory_reference.systems.pipeline.stores.rows_store import (
    Admission,
    check_dimension,
    dimension_of,
    is_countable,
    sound_memories,
    sql_condition,
    total_of,
    vector_of,
)
from memstory_reference.systems.pipeline.stores.tables_store import MEMORY_COLUMNS

TABLES = ((MEMORY_COLUMNS, "memories"), ("*", "preferences"))

Plan = tuple[list[list[ChunkReceipt]], list[Write]]
"""What happens to each chunk of each text, and what is to be written."""

SCANNED_ROWS = 2_000
"""Vectors held at once while rows are compared one by one: 3 MB at 384 numbers."""


class PipelineStore:
    """Blocking; one connection, used by one thread at a time."""

    def __init__(self, database: SqlDatabase, rows: TableWriter) -> None:
        self._db = database
        self._rows = rows

    def embeddings(self, owner: str, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that are known of these contents, stored or cached."""
        found: dict[str, Vector] = {}
        held = dimension_of(self._db)
        for table in ("embeddings", "memories", "preferences"):
            for marks, part in batches_of_values(hashes):
                sql = f"SELECT hash, vector FROM {table} WHERE owner = ? AND hash IN ({marks})"  # noqa: S608
                for row in self._db.execute(sql, (owner, *part)):
                    if is_countable(vector := vector_of(row["vector"]), held):
                        found[row["hash"]] = vector
        return found

    def read_for_ingest(self, owner: str, hashes: Sequence[str] = (), keys: Sequence[str] = ()) -> UserMemories:
        """Return what matters to new texts of these hashes and keys; archived memories are nobody's twin (PF-6).

        The caller is alone with the user.
        """
        known = UserMemories()
        sums = "SELECT total, count FROM centroids WHERE owner = ?"
        held = dimension_of(self._db)
        row = self._db.execute(sums, (owner,)).fetchone()
        if row and total_of(row, held) is None:
            self._rows.recount(owner)
            row = self._db.execute(sums, (owner,)).fetchone()
        if row and (total := total_of(row, held)) is not None:
            known.total, known.count = total, row["count"]
        for marks, part in batches_of_values(hashes):
            sql = (
                f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND hash IN ({marks}) "  # noqa: S608
                "AND (compressed = 0 OR summary IS NULL) AND compression_source = 0"
            )
            for memory, content_hash in sound_memories(self._db, sql, (owner, *part)):
                known.twins[twin_of(memory, content_hash)] = memory
        for marks, part in batches_of_values(keys):
            sql = f"SELECT * FROM preferences WHERE owner = ? AND replaced_by IS NULL AND key IN ({marks})"  # noqa: S608
            for memory, content_hash in sound_memories(self._db, sql, (owner, *part)):
                known.preferences[str(memory.key)] = (memory, content_hash)
        return known

    def ingest(
        self,
        owner: str,
        chunks: Sequence[Chunk],
        plan: Callable[[UserMemories], Plan],
        cached: Mapping[str, Vector],
        keep: int,
    ) -> Plan:
        """Plan what becomes of `chunks` and carry it out; cache the vectors that are not stored, the latest `keep`.

        What the plan is made of is still true when it is carried out: a text that two processes take in is one memory.
        """
        with self._rows.alone(owner):
            hashes, keys = [one.content_hash for one in chunks], [one.key for one in chunks]
            receipts, writes = plan(self.read_for_ingest(owner, hashes, keys))
            self._write(owner, writes, cached, keep)
        return receipts, writes

    def _write(self, owner: str, writes: Sequence[Write], cached: Mapping[str, Vector], keep: int) -> None:
        self._rows.insert(owner, [one for one in writes if isinstance(one, Insertion)])
        for write in writes:
            if isinstance(write, PreferenceChange):
                self._rows.set(write.memory, write.content_hash, write.vector)
            elif isinstance(write, Bump):
                self._rows.bump(write.memory)
        stored = {one.content_hash for one in writes if not isinstance(one, Bump)}
        unstored = {one: vector for one, vector in cached.items() if one not in stored}
        if unstored:
            self._rows.cache(owner, unstored, keep)

    def put(self, owner: str, rows: Sequence[Insertion | PreferenceChange]) -> list[MemoryChunk]:
        """Write rows as they are; one of an id or key that exists is replaced. Return them as they are stored.

        Summaries are tied to their sessions.

        A row that names a summary or a later preference that does not exist is shown as if it named none (PF-8).
        """
        with self._rows.alone(owner):
            keys = self._keys(owner) | {row.memory.id: row.memory.key for row in rows}
            for row in rows:
                if isinstance(row, PreferenceChange):
                    is_history = keys.get(row.memory.replaced_by or "") == row.memory.key
                    memory = row.memory if is_history else replace(row.memory, replaced_by=None)
                    self._rows.set(memory, row.content_hash, row.vector)
            by_id = {row.memory.id: row for row in rows if isinstance(row, Insertion)}
            for one in by_id:
                self._rows.remove(owner, one)
            self._rows.insert(owner, list(by_id.values()))
            shown = self._db.execute(
                "UPDATE memories SET summary = NULL WHERE owner = ? AND summary IS NOT NULL AND NOT EXISTS (SELECT 1 "
                "FROM memories AS s WHERE s.owner = memories.owner AND s.id = memories.summary AND "
                "s.compression_source = 1) RETURNING id",
                (owner,),
            ).fetchall()
            tied = self._db.execute(
                "UPDATE memories SET summary = (SELECT s.id FROM memories AS s WHERE s.owner = memories.owner AND "
                "s.compression_source = 1 AND s.source_session = memories.session "
                "ORDER BY s.created_at DESC, s.id LIMIT 1) "
                "WHERE owner = ? AND compressed = 1 AND summary IS NULL RETURNING id",
                (owner,),
            ).fetchall()
            self._rows.memories.note_changes(row["id"] for row in (*shown, *tied))
            return self.get(owner, [row.memory.id for row in rows])

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryChunk]:
        """Return the memories that exist, in the order of `ids`."""
        found: dict[str, MemoryChunk] = {}
        for marks, part in batches_of_values(ids):
            for columns, table in TABLES:
                sql = f"SELECT {columns} FROM {table} WHERE owner = ? AND id IN ({marks})"  # noqa: S608
                found |= {one.id: one for one, _ in sound_memories(self._db, sql, (owner, *part))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def preference(self, owner: str, key: str) -> MemoryChunk | None:
        """Return the procedural memory that holds under a key."""
        sql = "SELECT * FROM preferences WHERE owner = ? AND key = ? AND replaced_by IS NULL"
        return next((one for one, _ in sound_memories(self._db, sql, (owner, key))), None)

    def history(self, owner: str, key: str) -> list[MemoryChunk]:
        """Return all that was ever said under a key, the newest first."""
        sql = "SELECT * FROM preferences WHERE owner = ? AND key = ? ORDER BY updated_at DESC, row DESC"
        return [one for one, _ in sound_memories(self._db, sql, (owner, key))]

    def preferences(self, owner: str, limit: int | None = None, *, include_replaced: bool = False) -> list[MemoryChunk]:
        """Return procedural memories, the newest first."""
        those = "" if include_replaced else "AND replaced_by IS NULL "
        sql = f"SELECT * FROM preferences WHERE owner = ? {those}ORDER BY updated_at DESC, row DESC LIMIT ?"  # noqa: S608
        return [one for one, _ in sound_memories(self._db, sql, (owner, EVERY if limit is None else limit))]

    def admit(self, owner: str, ids: Sequence[str], admission: Admission) -> dict[str, MemoryChunk]:
        """Return, by id, those of these memories that a recall may return."""
        sql, parameters = sql_condition(admission, is_by_id=True)
        found: dict[str, MemoryChunk] = {}
        for marks, part in batches_of_values(ids):
            query = f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND id IN ({marks}) AND {sql}"  # noqa: S608
            found |= {one.id: one for one, _ in sound_memories(self._db, query, (owner, *part, *parameters))}
        return found

    def nearest(self, owner: str, vector: Vector, k: int, admission: Admission) -> dict[str, float]:
        """Return the k nearest of all memories that a recall may return, by cosine; exact, row by row."""
        sql, parameters = sql_condition(admission)
        held = dimension_of(self._db)
        check_dimension(held, vector)
        query = f"SELECT id, vector FROM memories WHERE owner = ? AND length(vector) = ? AND {sql}"  # noqa: S608
        best: list[tuple[float, str]] = []
        for rows in self._db.batches(query, (owner, 4 * (held or 0), *parameters), SCANNED_ROWS):
            matrix = np.frombuffer(b"".join(blob for _, blob in rows), np.float32).reshape(len(rows), -1)
            usable_rows = np.flatnonzero(np.isfinite(matrix).all(axis=1) & matrix.any(axis=1))
            scores = np.clip(products(matrix[usable_rows], np.asarray(vector, np.float32)), -1.0, 1.0)
            worst = np.partition(scores, -k)[-k] if k < len(scores) else -1.0
            near = np.flatnonzero(scores >= worst)
            best += [(-float(scores[place]), rows[usable_rows[place]][0]) for place in near]
            best = sorted(best)[:k]
        return {identifier: -score for score, identifier in best}

    def recent(
        self, owner: str, kinds: Sequence[ChunkType], limit: int | None, *, include_replaced: bool = False
    ) -> list[MemoryChunk]:
        """Return memories of all sorts, archived ones too, newest first."""
        marks = ", ".join("?" for _ in kinds)
        sql = (
            f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND kind IN ({marks}) "  # noqa: S608
            "ORDER BY created_at DESC, row DESC LIMIT ?"
        )
        values = (owner, *map(str, kinds), EVERY if limit is None else limit)
        found = [one for one, _ in sound_memories(self._db, sql, values)]
        if ChunkType.PROCEDURAL in kinds:
            found += self.preferences(owner, limit, include_replaced=include_replaced)
            found.sort(key=lambda memory: memory.created_at, reverse=True)
        return found if limit is None else found[:limit]

    def change(
        self,
        owner: str,
        identifier: str,
        reword: Callable[[MemoryChunk], MemoryChunk],
        content_hash: str,
        vector: Vector,
    ) -> MemoryChunk | None:
        """Reword a memory and return it, None if there is no such one; a summary made of its old words goes.

        A summary stays that of its session. A preference that is about something else now has left its old key.
        """
        with self._rows.alone(owner):
            found = self.get(owner, [identifier])
            if not found:
                return None
            old, new = found[0], reword(found[0])
            if not old.compression_source:
                self._rows.release(owner, old.summary_id)
            if old.key is not None:
                if new.key != old.key:
                    self._rows.unset(owner, old.id)
                self._rows.set(new, content_hash, vector)
            else:
                self._rows.remove(owner, old.id)
                self._rows.insert(owner, [Insertion(memory=new, content_hash=content_hash, vector=vector)])
            return new

    def delete(
        self, owner: str, ids: Sequence[str], bury: Callable[[Sequence[str]], object] | None = None
    ) -> list[str]:
        """Forget memories with their cached embeddings and the summaries made of them; return the ids that existed.

        `bury` is called with their texts before. Damaged ones, which nothing else returns, can be deleted, too.
        """
        deleted = []
        summary = (
            "SELECT CASE compression_source WHEN 0 THEN summary ELSE id END FROM memories WHERE owner = ? AND id = ?"
        )
        with self._rows.alone(owner):
            if bury is not None:
                bury([one.content for one in self.get(owner, ids)])
            for one in dict.fromkeys(ids):
                stands_for = self._db.execute(summary, (owner, one)).fetchone()
                self._rows.uncache(owner, one)
                if stands_for is not None:
                    self._rows.release(owner, stands_for[0])
                    self._rows.remove(owner, one)
                if stands_for is not None or self._rows.unset(owner, one):
                    deleted.append(one)
        return deleted

    def owners(self) -> list[str]:
        """Return who has memories here, by name."""
        rows = self._db.execute("SELECT owner FROM memories UNION SELECT owner FROM preferences ORDER BY owner")
        return [row["owner"] for row in rows]

    def forget(self, owner: str) -> int:
        """Forget a user, with everything that was learnt from the user's texts; return how many memories that were."""
        with self._rows.alone(owner):
            ids = [row["id"] for row in self._db.execute("SELECT id FROM memories WHERE owner = ?", (owner,))]
            stated = [one.id for one in self.preferences(owner, include_replaced=True)]
            for table in ("memories", "preferences", "embeddings", "centroids"):
                self._db.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608
            self._rows.memories.note_changes(ids)
            self._rows.preferences.note_changes(stated)
        self._db.forget_log()
        return len(ids) + len(stated)

    def drift(self, owner: str) -> float:
        """Return how far the centroid that is kept lies from the mean of the rows, at its worst number."""
        with self._rows.alone(owner):
            kept, fresh = self.read_for_ingest(owner).centroid, centroid(self._vectors(owner))
        if kept is None or fresh is None:
            return 0.0 if kept is fresh else float("inf")
        return float(np.abs(kept - fresh).max())

    def _vectors(self, owner: str) -> NDArray[np.float32]:
        held = dimension_of(self._db)
        rows = self._db.execute("SELECT vector FROM memories WHERE owner = ? ORDER BY row", (owner,))
        return np.array([one for (blob,) in rows if is_countable(one := vector_of(blob), held)], np.float32)

    def broken(self, owner: str) -> list[Broken]:
        """Return the rows whose vectors cannot be compared."""
        held = dimension_of(self._db)
        found = []
        for table in ("memories", "preferences"):
            rows = self._db.rows(f"SELECT id, content, vector FROM {table} WHERE owner = ?", (owner,))  # noqa: S608
            found += [(table, row[0], row[1]) for row in rows if not is_countable(vector_of(row[2]), held)]
        return found

    def mend(self, owner: str, broken: Sequence[Broken], vectors: Sequence[Vector]) -> None:
        """Give rows the vectors that they lack, and count the centroid again."""
        with self._rows.alone(owner):
            for row, vector in zip(broken, vectors, strict=True):
                self._rows.mend(owner, row, vector)
            self._rows.recount(owner)

    def overview(self, owner: str, limit: int) -> tuple[list[MemoryChunk], bool, bool]:
        """Return the newest procedural memories, whether there are more of them, and whether there is any other."""
        newest = self.preferences(owner, limit + 1)
        other = self._db.execute("SELECT 1 FROM memories WHERE owner = ? LIMIT 1", (owner,)).fetchone()
        return newest[:limit], len(newest) > limit, other is not None

    def _count_damaged(self, owner: str) -> int:
        damaged = 0
        for columns, table in TABLES:
            rows = f"FROM {table} WHERE owner = ?"
            (stored,) = self._db.execute(f"SELECT count(*) {rows}", (owner,)).fetchone()
            damaged += stored - sum(1 for _ in sound_memories(self._db, f"SELECT {columns} {rows}", (owner,)))
        return damaged

    def _keys(self, owner: str) -> dict[str, str | None]:
        rows = self._db.execute("SELECT id, key FROM preferences WHERE owner = ?", (owner,))
        return {row["id"]: row["key"] for row in rows}

    def count(self, owner: str) -> dict[str, int]:
        """Count a user's rows."""
        kinds = {str(kind): 0 for kind in ChunkType}
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
            "procedural": number("SELECT count(*) FROM preferences WHERE owner = ? AND replaced_by IS NULL"),
            "replaced": number("SELECT count(*) FROM preferences WHERE owner = ? AND replaced_by IS NOT NULL"),
            "compressed": number(compressed),
            "sessions": number(sessions),
            "damaged": self._count_damaged(owner),
            "unreadable": self._db.count_lost("memories", "preferences"),
            "cached": number("SELECT count(*) FROM embeddings WHERE owner = ?"),
        }
