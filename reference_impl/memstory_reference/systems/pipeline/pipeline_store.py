"""The pipeline's memory in SQLite or Postgres: the truth of rows, preferences, cached embeddings and centroids.

Each write is one transaction that also moves the centroid and notes which vectors are to be read again, so a process
that is killed leaves no half-known memory.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.held_rows import Change, HeldOwners
from memstory_reference.storage.sql_database import EVERY, SqlDatabase, batches_of_values
from memstory_reference.storage.vector_matrix import VectorMatrix, check_dimension, normalized_or_none, products
from memstory_reference.systems.pipeline.chunk import (
    ChunkReceipt,
    ChunkType,
    MemoryChunk,
    Vector,
    Write,
    content_hash,
)
from memstory_reference.systems.pipeline.ingest import Piece, UserMemories, twin_of
from memstory_reference.systems.pipeline.tables import (
    MEMORIES,
    PREFERENCES,
    TABLES,
    MemoryTable,
    dimension_of,
    stamp,
    vector_of,
)

_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

Plan = tuple[list[list[ChunkReceipt]], list[Write]]
"""What happens to each chunk of each text, and what is to be written."""

Broken = tuple[str, str, str]
"""Table, id and content of a row whose vector cannot be compared."""

_Vectors = Iterator[tuple[str, Vector | None]]

SCANNED_ROWS = 2_000
"""Vectors held at once while rows are compared one by one: 3 MB at 384 numbers."""

_EPISODES = "AND kind = 'episodic' AND compressed = 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Which memories a recall may return (P-16, PF-8, PF-15).

    Of working memories: those of `session`, or without one those made since `working_since`.
    """

    kinds: Sequence[ChunkType]
    least_importance: float
    working_since: datetime
    include_compressed: bool = False
    session: str | None = None


def sql_condition(admission: Admission, *, is_by_id: bool = False) -> tuple[str, list[object]]:
    """Return the SQL condition on a row of `memories`, and its parameters; `is_by_id` says that ids are named too."""
    marks = ", ".join("?" for _ in admission.kinds)
    # What is computed keeps SQLite from walking through all rows of a type where a few ids are named.
    kind = "kind || ''" if is_by_id else "kind"
    # A rounded number stands for what was reached by it: 0.2 typed and 0.2 computed are the same.
    sql = f"{kind} IN ({marks}) AND importance >= ? - 1e-9"
    parameters: list[object] = [*map(str, admission.kinds), admission.least_importance]
    if not admission.include_compressed:
        sql += f" AND {MEMORIES.found}"
    if admission.session is not None:
        sql += " AND (kind <> 'working' OR session = ?)"
        parameters.append(admission.session)
    else:
        sql += " AND (kind <> 'working' OR created_at >= ?)"
        parameters.append(stamp(admission.working_since))
    return sql, parameters


class PipelineStore:
    """Blocking; by a database that one thread uses at a time, or through `run` and `similar`.

    The vectors that a recall may find are held in memory: archived memories and replaced preferences are not among
    them, so they can crowd nobody out (PF-9). One that cannot be compared is set aside: its row is listed, counted and
    mended by a reindex, and harms no other.
    """

    def __init__(self, database: SqlDatabase, held: HeldOwners | None = None) -> None:
        self._db = database
        self._held = held or HeldOwners()
        self._changed: dict[MemoryTable, set[str]] = {table: set() for table in TABLES}

    async def run(self, work: Callable[Concatenate[PipelineStore, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Work by a database that is lent for this alone: calls need not wait for one another."""
        return await self._db.run(lambda database: work(PipelineStore(database, self._held), *args, **kwargs))

    async def similar(self, table: MemoryTable, owner: str, vector: Vector, k: int) -> dict[str, float]:
        """Return the cosines of the k nearest of a table by id, best first; StoreConflictError for a foreign vector."""
        query = normalized_or_none(vector)
        return {} if query is None else dict(await self.run(PipelineStore._similar, table, owner, query, k))

    def _similar(self, table: MemoryTable, owner: str, query: Vector, k: int) -> list[tuple[str, float]]:
        check_dimension(dimension_of(self._db), query)
        return self._search(table, owner, lambda matrix: matrix.nearest(query, k))

    def _search(self, table: MemoryTable, owner: str, by: Callable[[VectorMatrix], T]) -> T:
        # The version before the rows: what is written in between is then read once more.
        version = self._version(owner)
        return self._held.search(owner, table.name, version, read=lambda: self._matrix(table, owner), by=by)

    def _matrix(self, table: MemoryTable, owner: str) -> VectorMatrix:
        matrix, aside = VectorMatrix(), 0
        for identifier, vector in self._vectors(table, owner):
            if vector is not None:
                matrix.put(identifier, vector)
            aside += vector is None
        if aside:
            _log.warning("%d memories cannot be found by meaning until their user is reindexed", aside)
        return matrix

    def _vectors(self, table: MemoryTable, owner: str, where: str = "", values: Sequence[object] = ()) -> _Vectors:
        """Yield ids and vectors of the rows of a table that a recall may find; None for one that cannot be compared."""
        held = dimension_of(self._db)
        sql = f"SELECT id, vector FROM {table.name} WHERE owner = ? AND {table.found} {where}"  # noqa: S608
        for rows in self._db.batches(sql, (owner, *values)):
            for identifier, blob in rows:
                yield identifier, vector_of(blob, held) if isinstance(identifier, str) else None

    @contextmanager
    def _alone(self, owner: str) -> Iterator[None]:
        """Read and write, all or nothing, while nobody else writes for this user, in any process.

        Rows that have changed have a new version, by which a process that holds an earlier one reads them all again.
        """
        for changed in self._changed.values():
            changed.clear()
        with self._db.transaction(owner):
            before = version = self._version(owner)
            yield
            if any(self._changed.values()):
                version = self._draw_version(owner)
            changes = self._changes(owner) if version != before and self._held.has(owner, before) else None
        if changes is not None:
            self._held.follow(owner, before, version, changes)
        elif version != before:
            self._held.drop(owner)

    def _version(self, owner: str) -> object:
        row = self._db.execute("SELECT version FROM versions WHERE owner = ? AND name = 'rows'", (owner,)).fetchone()
        return row and row["version"]

    def _draw_version(self, owner: str) -> object:
        # Drawn and not counted: a number would come again once the user's last row is gone, and the version with it.
        self._db.execute("DELETE FROM versions WHERE owner = ?", (owner,))
        drawn = self._db.execute(
            "INSERT INTO versions SELECT ?, 'rows', ? WHERE EXISTS (SELECT 1 FROM memories WHERE owner = ?) "
            "OR EXISTS (SELECT 1 FROM preferences WHERE owner = ?) RETURNING version",
            (owner, secrets.token_hex(8), owner, owner),
        ).fetchone()
        return drawn and drawn["version"]

    def _changes(self, owner: str) -> list[Change]:
        """Return what the rows are now of which something was noted."""
        changes = []
        for table, ids in self._changed.items():
            found: dict[str, Vector | None] = {}
            for marks, part in batches_of_values(list(ids)):
                found |= dict(self._vectors(table, owner, f"AND id IN ({marks})", part))
            changes += [Change(part=table.name, id=one, vector=found.get(one)) for one in ids]
        return changes

    def note_changes(self, table: MemoryTable, ids: Iterable[str]) -> None:
        """Note rows that were written, of the user of the transaction."""
        self._changed[table].update(ids)

    def embeddings(self, owner: str, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that are known of these contents, stored or cached."""
        found: dict[str, Vector] = {}
        held = dimension_of(self._db)
        for table in ("embeddings", "memories", "preferences"):
            for marks, part in batches_of_values(hashes):
                sql = f"SELECT hash, vector FROM {table} WHERE owner = ? AND hash IN ({marks})"  # noqa: S608
                for row in self._db.execute(sql, (owner, *part)):
                    if (vector := vector_of(row["vector"], held)) is not None:
                        found[row["hash"]] = vector
        return found

    def read_for_ingest(self, owner: str, hashes: Sequence[str] = (), keys: Sequence[str] = ()) -> UserMemories:
        """Return what matters to new texts of these hashes and keys; archived memories are nobody's twin (PF-6).

        The caller is alone with the user.
        """
        total, count = self._sum(owner) or self.recount(owner)
        twins = MEMORIES.read(
            self._db, owner, f"AND {MEMORIES.found} AND compression_source = 0", among=("hash", hashes)
        )
        stated = PREFERENCES.read(self._db, owner, f"AND {PREFERENCES.found}", among=("key", keys))
        return UserMemories(
            total=total,
            count=count,
            twins={twin_of(one.content, one.memory_type, one.session_id): one for one in twins},
            preferences={str(one.key): one for one in stated},
        )

    def ingest(
        self,
        owner: str,
        pieces: Sequence[Piece],
        plan: Callable[[UserMemories], Plan],
        cached: Mapping[str, Vector],
        keep: int,
    ) -> Plan:
        """Plan what becomes of `pieces` and carry it out; cache the vectors that are not stored, the latest `keep`.

        What the plan is made of is still true when it is carried out: a text that two processes take in is one memory.
        """
        with self._alone(owner):
            hashes, keys = [one.content_hash for one in pieces], [one.key for one in pieces]
            receipts, writes = plan(self.read_for_ingest(owner, hashes, keys))
            new = [one for one in writes if one.is_new]
            self._insert(owner, [one for one in new if one.memory.key is None])
            for one in writes:
                if not one.is_new:
                    self._bump(one.memory)
                elif one.memory.key is not None:
                    self.set(one)
            stored = {content_hash(one.memory.content) for one in new}
            self._cache(owner, {one: vector for one, vector in cached.items() if one not in stored}, keep)
        return receipts, writes

    def put(self, owner: str, rows: Sequence[Write]) -> list[MemoryChunk]:
        """Write rows as they are; one of an id or key that exists is replaced. Return them as they are stored.

        Summaries are tied to their sessions.

        A row that names a summary or a later preference that does not exist is shown as if it named none (PF-8).
        """
        with self._alone(owner):
            known = PREFERENCES.rows(self._db, owner, columns="id, key")
            keys = {row["id"]: row["key"] for row in known} | {row.memory.id: row.memory.key for row in rows}
            for row in (one for one in rows if one.memory.key is not None):
                is_history = keys.get(row.memory.replaced_by or "") == row.memory.key
                self.set(row if is_history else replace(row, memory=replace(row.memory, replaced_by=None)))
            by_id = {row.memory.id: row for row in rows if row.memory.key is None}
            for one in by_id:
                self._remove(owner, one)
            self._insert(owner, list(by_id.values()))
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
            self.note_changes(MEMORIES, [row["id"] for row in (*shown, *tied)])
            return self.get(owner, [row.memory.id for row in rows])

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryChunk]:
        """Return the memories that exist, in the order of `ids`."""
        found = {one.id: one for table in TABLES for one in table.read(self._db, owner, among=("id", ids))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def preference(self, owner: str, key: str) -> MemoryChunk | None:
        """Return the procedural memory that holds under a key."""
        return next(PREFERENCES.read(self._db, owner, f"AND key = ? AND {PREFERENCES.found}", (key,)), None)

    def history(self, owner: str, key: str) -> list[MemoryChunk]:
        """Return all that was ever said under a key, the newest first."""
        return list(PREFERENCES.read(self._db, owner, "AND key = ? ORDER BY updated_at DESC, row DESC", (key,)))

    def preferences(self, owner: str, limit: int | None = None, *, include_replaced: bool = False) -> list[MemoryChunk]:
        """Return procedural memories, the newest first."""
        those = f"{'' if include_replaced else f'AND {PREFERENCES.found}'} ORDER BY updated_at DESC, row DESC LIMIT ?"
        return list(PREFERENCES.read(self._db, owner, those, (EVERY if limit is None else limit,)))

    def admit(self, owner: str, ids: Sequence[str], admission: Admission) -> dict[str, MemoryChunk]:
        """Return, by id, those of these memories that a recall may return."""
        sql, parameters = sql_condition(admission, is_by_id=True)
        return {one.id: one for one in MEMORIES.read(self._db, owner, f"AND {sql}", parameters, among=("id", ids))}

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
        those = f"AND kind IN ({marks}) ORDER BY created_at DESC, row DESC LIMIT ?"
        found = list(MEMORIES.read(self._db, owner, those, (*map(str, kinds), EVERY if limit is None else limit)))
        if ChunkType.PROCEDURAL in kinds:
            found += self.preferences(owner, limit, include_replaced=include_replaced)
            found.sort(key=lambda memory: memory.created_at, reverse=True)
        return found if limit is None else found[:limit]

    def overview(self, owner: str, limit: int) -> tuple[list[MemoryChunk], bool, bool]:
        """Return the newest procedural memories, whether there are more of them, and whether there is any other."""
        newest = self.preferences(owner, limit + 1)
        other = self._db.execute("SELECT 1 FROM memories WHERE owner = ? LIMIT 1", (owner,)).fetchone()
        return newest[:limit], len(newest) > limit, other is not None

    def change(
        self, owner: str, identifier: str, reword: Callable[[MemoryChunk], MemoryChunk], vector: Vector
    ) -> MemoryChunk | None:
        """Reword a memory and return it, None if there is no such one; a summary made of its old words goes.

        A summary stays that of its session. A preference that is about something else now has left its old key.
        """
        with self._alone(owner):
            found = self.get(owner, [identifier])
            if not found:
                return None
            old, new = found[0], reword(found[0])
            if not old.compression_source:
                self.release(owner, old.summary_id)
            if old.key is not None:
                if new.key != old.key:
                    self._unset(owner, old.id)
                self.set(Write(memory=new, vector=vector))
            else:
                self._remove(owner, old.id)
                self._insert(owner, [Write(memory=new, vector=vector)])
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
        uncache = (
            "DELETE FROM embeddings WHERE owner = ? AND hash IN (SELECT hash FROM memories WHERE owner = ? AND id = ? "
            "UNION ALL SELECT hash FROM preferences WHERE owner = ? AND id = ?)"
        )
        with self._alone(owner):
            if bury is not None:
                bury([one.content for one in self.get(owner, ids)])
            for one in dict.fromkeys(ids):
                stands_for = self._db.execute(summary, (owner, one)).fetchone()
                self._db.execute(uncache, (owner, *(owner, one) * 2))
                if stands_for is not None:
                    self.release(owner, stands_for[0])
                    self._remove(owner, one)
                if stands_for is not None or self._unset(owner, one):
                    deleted.append(one)
        return deleted

    def forget(self, owner: str) -> int:
        """Forget a user, with everything that was learnt from the user's texts; return how many memories that were."""
        with self._alone(owner):
            # Not read: what is damaged is forgotten, too.
            ids, stated = ([str(row[0]) for row in table.rows(self._db, owner, columns="id")] for table in TABLES)
            for table in ("memories", "preferences", "embeddings", "centroids"):
                self._db.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608
            self.note_changes(MEMORIES, ids)
            self.note_changes(PREFERENCES, stated)
        self._held.drop(owner)  # what was damaged may be held under another id
        self._db.forget_log()
        return len(ids) + len(stated)

    def sessions(self, owner: str) -> list[str]:
        """Return the sessions that have uncompressed episodic memories, the oldest first."""
        those = f"{_EPISODES} GROUP BY session ORDER BY min(created_at), session"
        return [row["session"] for row in MEMORIES.rows(self._db, owner, those, columns="session")]

    def episodes(self, owner: str, session: str) -> list[MemoryChunk]:
        """Return the uncompressed episodic memories of a session in the order of time."""
        return list(MEMORIES.read(self._db, owner, f"{_EPISODES} AND session = ? ORDER BY created_at, row", (session,)))

    def archive(self, summary: Write, originals: Sequence[MemoryChunk]) -> bool:
        """Store a summary and flag what it was made of, at once; False if any of that has changed meanwhile."""
        owner = summary.memory.user_id
        with self._alone(owner):
            found = {one.id: one for one in self.get(owner, [memory.id for memory in originals])}
            for one in originals:
                now = found.get(one.id)
                if now is None or now.content != one.content or now.compressed:
                    return False
            self._insert(owner, [summary])
            flagged = [(summary.memory.id, owner, one.id) for one in originals]
            self._db.executemany("UPDATE memories SET compressed = 1, summary = ? WHERE owner = ? AND id = ?", flagged)
            self.note_changes(MEMORIES, found)
        return True

    def release(self, owner: str, summary: str | None) -> None:
        """Undo a compression, if there is one: its summary goes, the other originals are shown again."""
        if summary is None:
            return
        released = self._db.execute(
            "UPDATE memories SET compressed = 0, summary = NULL WHERE owner = ? AND summary = ? RETURNING id",
            (owner, summary),
        ).fetchall()
        self.note_changes(MEMORIES, [row["id"] for row in released])
        self._remove(owner, summary)

    def owners(self) -> list[str]:
        """Return who has memories here, by name."""
        rows = self._db.execute("SELECT owner FROM memories UNION SELECT owner FROM preferences ORDER BY owner")
        return [row["owner"] for row in rows]

    def count(self, owner: str) -> dict[str, int]:
        """Count a user's rows."""
        kinds = {str(kind): 0 for kind in ChunkType}
        rows = MEMORIES.rows(self._db, owner, "GROUP BY kind", columns="kind, count(*)")
        kinds |= {kind: number for kind, number in rows if isinstance(kind, str)}
        stored = sum(table.count(self._db, owner) for table in TABLES)
        searched = sum(table.count(self._db, owner, f"AND {table.found}") for table in TABLES)
        (cached,) = self._db.execute("SELECT count(*) FROM embeddings WHERE owner = ?", (owner,)).fetchone()
        vectors, stated = (self._search(table, owner, len) for table in TABLES)
        return {
            **kinds,
            "procedural": PREFERENCES.count(self._db, owner, f"AND {PREFERENCES.found}"),
            "replaced": PREFERENCES.count(self._db, owner, "AND replaced_by IS NOT NULL"),
            "compressed": MEMORIES.count(self._db, owner, "AND compressed = 1"),
            "sessions": len(self.sessions(owner)),
            "damaged": stored - sum(1 for table in TABLES for _ in table.read(self._db, owner)),
            "unreadable": self._db.count_lost("memories", "preferences"),
            "cached": cached,
            "vectors": vectors,
            "set_aside": searched - vectors - stated,
        }

    def drift(self, owner: str) -> float:
        """Return how far the centroid that is kept lies from the mean of the rows, at its worst number."""
        with self._alone(owner):
            total, number = self._sum(owner) or self.recount(owner)
            fresh, rows = self._sum_of_rows(owner)
        if not (number and rows):
            return 0.0 if number == rows else float("inf")
        return float(np.abs(total / number - fresh / rows).max())

    def broken(self, owner: str) -> list[Broken]:
        """Return the rows whose vectors cannot be compared."""
        held = dimension_of(self._db)
        found = []
        for table in TABLES:
            rows = table.rows(self._db, owner, columns="id, content, vector")
            found += [(table.name, row[0], row[1]) for row in rows if vector_of(row[2], held) is None]
        return found

    def mend(self, owner: str, broken: Sequence[Broken], vectors: Sequence[Vector]) -> int:
        """Give rows the vectors that they lack, and count the centroid again; return how many memories are found.

        A row that has another content by now stays as it is.
        """
        with self._alone(owner):
            for (table, identifier, content), vector in zip(broken, vectors, strict=True):
                (ready,) = self._fitting([vector])
                self._db.execute(
                    f"UPDATE {table} SET vector = ? WHERE owner = ? AND id = ? AND content = ?",  # noqa: S608
                    (ready.tobytes(), owner, identifier, content),
                )
                self.note_changes(MEMORIES if table == MEMORIES.name else PREFERENCES, [identifier])
            self.recount(owner)
        self._held.drop(owner)
        return self._search(MEMORIES, owner, len)

    def _insert(self, owner: str, new: Sequence[Write]) -> None:
        """Write memories that are found by their vectors; StoreConflictError for one of another dimension."""
        if not new:
            return
        vectors = self._fitting([one.vector for one in new])
        rows = [MEMORIES.values(one.memory, vector=vector.tobytes()) for one, vector in zip(new, vectors, strict=True)]
        MEMORIES.insert(self._db, rows)
        self.shift(owner, np.sum(vectors, axis=0, dtype=np.float64), len(new))
        self.note_changes(MEMORIES, [one.memory.id for one in new])

    def set(self, new: Write) -> None:
        """Write a procedural memory; what its key held is history from now on, unless the memory is history itself."""
        memory, (ready,) = new.memory, self._fitting([new.vector])
        replaced = []
        if memory.replaced_by is None:
            replaced = self._db.execute(
                "UPDATE preferences SET replaced_by = ? "
                "WHERE owner = ? AND key = ? AND replaced_by IS NULL AND id <> ? RETURNING id",
                (memory.id, memory.user_id, memory.key, memory.id),
            ).fetchall()
        self._db.execute("DELETE FROM preferences WHERE owner = ? AND id = ?", (memory.user_id, memory.id))
        PREFERENCES.insert(self._db, [PREFERENCES.values(memory, vector=ready.tobytes())])
        self.note_changes(PREFERENCES, [memory.id, *(row["id"] for row in replaced)])

    def _remove(self, owner: str, identifier: str) -> None:
        """Delete a memory that is found by its vector, if it exists."""
        row = self._db.execute(
            "DELETE FROM memories WHERE owner = ? AND id = ? RETURNING vector", (owner, identifier)
        ).fetchone()
        if row:
            vector = vector_of(row["vector"], dimension_of(self._db))
            self.shift(owner, None if vector is None else -vector, -1)
            self.note_changes(MEMORIES, [identifier])

    def _unset(self, owner: str, identifier: str) -> bool:
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
        self.note_changes(PREFERENCES, [identifier, *(one for (one,) in replaced)])
        return True

    def _bump(self, memory: MemoryChunk) -> None:
        """Note that a memory's text came once more."""
        table = MEMORIES if memory.key is None else PREFERENCES
        self._db.execute(
            f"UPDATE {table.name} SET times_seen = ?, updated_at = ? WHERE owner = ? AND id = ?",  # noqa: S608
            (memory.times_seen, stamp(memory.updated_at), memory.user_id, memory.id),
        )

    def _cache(self, owner: str, vectors: Mapping[str, Vector], keep: int) -> None:
        """Keep vectors of texts that are not stored, the latest `keep` of a user."""
        if not vectors:
            return
        ready = self._fitting(list(vectors.values()))
        self._db.executemany(
            "INSERT INTO embeddings (owner, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(owner, one, vector.tobytes()) for one, vector in zip(vectors, ready, strict=True)],
        )
        self._db.execute(
            "DELETE FROM embeddings WHERE owner = ? AND row <= "
            "(SELECT row FROM embeddings WHERE owner = ? ORDER BY row DESC LIMIT 1 OFFSET ?)",
            (owner, owner, keep),
        )

    def shift(self, owner: str, vector: NDArray[np.floating] | None, step: int) -> None:
        """Move the sum behind the centroid, and its count by `step`; with the last vector it goes, rounding and all."""
        kept = self._sum(owner)
        if kept is None or vector is None or len(kept[0]) != len(vector):
            self.recount(owner)
        else:
            self._keep_sum(owner, kept[0] + vector, kept[1] + step)

    def recount(self, owner: str) -> tuple[NDArray[np.float64], int]:
        """Make the sum behind the centroid again, of the vectors that can be compared; return it and their number."""
        total, count = self._sum_of_rows(owner)
        self._keep_sum(owner, total, count)
        return total, count

    def _sum(self, owner: str) -> tuple[NDArray[np.float64], int] | None:
        """Return the sum behind the centroid and how many vectors it is of; None of a damaged one."""
        row = self._db.execute("SELECT total, count FROM centroids WHERE owner = ?", (owner,)).fetchone()
        held = dimension_of(self._db) or 0
        if row is None:
            return np.zeros(held), 0
        blob, count = row["total"], row["count"]
        if not isinstance(count, int) or not isinstance(blob, bytes) or len(blob) != 8 * held:
            return None
        total: NDArray[np.float64] = np.frombuffer(blob, np.float64)
        # No sum of so many vectors of length 1 is as long; false of NaN too.
        return (total, count) if count > 0 and (np.abs(total) <= 2 * count).all() else None

    def _sum_of_rows(self, owner: str) -> tuple[NDArray[np.float64], int]:
        held = dimension_of(self._db)
        total, count = np.zeros(held or 0), 0
        for (blob,) in self._db.execute("SELECT vector FROM memories WHERE owner = ?", (owner,)):
            if (vector := vector_of(blob, held)) is not None:
                total += vector
                count += 1
        return total, count

    def _keep_sum(self, owner: str, total: NDArray[np.float64], count: int) -> None:
        if count == 0:
            self._db.execute("DELETE FROM centroids WHERE owner = ?", (owner,))
        else:
            self._db.execute(
                "INSERT INTO centroids VALUES (?, ?, ?) "
                "ON CONFLICT (owner) DO UPDATE SET total = excluded.total, count = excluded.count",
                (owner, total.tobytes(), count),
            )

    def _fitting(self, vectors: Sequence[Vector]) -> list[Vector]:
        """Return vectors as they are stored; the first one says how many numbers all have."""
        ready = [np.asarray(vector, np.float32) for vector in vectors]
        self._db.execute("INSERT INTO about VALUES ('dimension', ?) ON CONFLICT DO NOTHING", (str(len(ready[0])),))
        held = dimension_of(self._db)
        for vector in ready:
            check_dimension(held, vector)
        return ready
