"""The pipeline's memory in SQLite: the truth of rows, preferences, cached embeddings and centroids.

Each write is one transaction that also moves the centroid and puts an entry into the outbox, from which the vector
index is kept; so a process that is killed leaves work to do, never a half-known memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import StoreConflictError
from memstory_reference.systems.pipeline.memory import MemoryChunk, MemoryType
from memstory_reference.systems.pipeline.planning import Bump, Insertion, Known, Setting, Vector, Write, twin_of
from memstory_reference.systems.pipeline.rows_store import (
    MEMORY_COLUMNS,
    PREFERENCE_COLUMNS,
    SCHEMA,
    SCHEMA_VERSION,
    Admission,
    condition,
    memory_of,
    memory_values,
    preference_of,
    preference_values,
    stamp,
)

SCANNED_ROWS = 2_000
"""Vectors held at once while rows are compared one by one: 3 MB at 384 numbers."""

_AT_ONCE = 500
_INSERT = f"INSERT INTO memories ({MEMORY_COLUMNS}, vector) VALUES ({', '.join('?' * 17)})"  # noqa: S608  (constants)
_SET = f"INSERT OR REPLACE INTO preferences ({PREFERENCE_COLUMNS}) VALUES ({', '.join('?' * 12)})"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A memory whose place in the vector index is to be brought up to date."""

    sequence: int
    owner: str
    id: str


class PipelineStore:
    """Blocking; one connection, used by one thread at a time."""

    def __init__(self, file: Path, *, model: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        self._db.executescript(SCHEMA)
        self._expect("schema", SCHEMA_VERSION, file)
        self._expect("model", model, file)

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._db.close()

    def embeddings(self, owner: str, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that are known of these contents, stored or cached."""
        found: dict[str, Vector] = {}
        for table in ("embeddings", "memories"):
            for marks, part in _parts(hashes):
                sql = f"SELECT hash, vector FROM {table} WHERE owner = ? AND hash IN ({marks})"  # noqa: S608
                found |= {row["hash"]: _vector(row["vector"]) for row in self._db.execute(sql, (owner, *part))}
        return found

    def known(self, owner: str, hashes: Sequence[str]) -> Known:
        """Return what matters to new texts with these hashes; archived memories are nobody's twin (PF-6)."""
        known = Known()
        row = self._db.execute("SELECT total, count FROM centroids WHERE owner = ?", (owner,)).fetchone()
        if row:
            known.total, known.count = np.frombuffer(row["total"], np.float64), row["count"]
        for marks, part in _parts(hashes):
            sql = (
                f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND hash IN ({marks}) "  # noqa: S608
                "AND (compressed = 0 OR summary IS NULL) AND compression_source = 0"
            )
            for found in self._db.execute(sql, (owner, *part)):
                memory = memory_of(found)
                known.twins[twin_of(memory, found["hash"])] = memory
        for found in self._db.execute("SELECT * FROM preferences WHERE owner = ?", (owner,)):
            known.preferences[found["key"]] = (preference_of(found), found["hash"])
        return known

    def write(self, owner: str, writes: Iterable[Write], cached: Mapping[str, Vector], keep: int) -> None:
        """Carry out a plan in one transaction, and cache the vectors that it does not store, the latest `keep`."""
        with self._transaction():
            unstored = dict(cached)
            for write in writes:
                if isinstance(write, Insertion):
                    self._insert(write.memory, write.content_hash, write.vector)
                    unstored.pop(write.content_hash, None)
                elif isinstance(write, Setting):
                    self._db.execute(_SET, preference_values(write.memory, write.content_hash))
                else:
                    self._bump(write)
            if unstored:
                self._cache(owner, unstored, keep)

    def put(self, owner: str, rows: Sequence[Insertion | Setting]) -> None:
        """Write rows as they are; one of an id or key that exists is replaced. Summaries are tied to their sessions."""
        with self._transaction():
            for row in rows:
                if isinstance(row, Setting):
                    self._db.execute(_SET, preference_values(row.memory, row.content_hash))
                else:
                    self._remove(owner, row.memory.id)
                    self._insert(row.memory, row.content_hash, row.vector)
            tied = self._db.execute(
                "UPDATE memories SET summary = (SELECT s.id FROM memories AS s WHERE s.owner = memories.owner AND "
                "s.compression_source = 1 AND s.source_session = memories.session ORDER BY s.created_at DESC, s.id LIMIT 1) "
                "WHERE owner = ? AND compressed = 1 AND summary IS NULL RETURNING id",
                (owner,),
            ).fetchall()
            self._announce(owner, [row["id"] for row in tied])

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryChunk]:
        """Return the memories that exist, in the order of `ids`."""
        found: dict[str, MemoryChunk] = {}
        for marks, part in _parts(ids):
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
        sql, parameters = condition(admission)
        found: dict[str, MemoryChunk] = {}
        for marks, part in _parts(ids):
            query = f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND id IN ({marks}) AND {sql}"  # noqa: S608
            found |= {row["id"]: memory_of(row) for row in self._db.execute(query, (owner, *part, *parameters))}
        return found

    def nearest(self, owner: str, vector: Vector, k: int, admission: Admission) -> dict[str, float]:
        """Return the k nearest of all memories that a recall may return, by cosine; exact, row by row."""
        sql, parameters = condition(admission)
        query = f"SELECT id, vector FROM memories WHERE owner = ? AND {sql}"  # noqa: S608
        cursor = self._db.execute(query, (owner, *parameters))
        best: list[tuple[float, str]] = []
        while rows := cursor.fetchmany(SCANNED_ROWS):
            matrix = np.frombuffer(b"".join(row["vector"] for row in rows), np.float32).reshape(len(rows), -1)
            scores = np.clip(matrix @ np.asarray(vector, np.float32), -1.0, 1.0)
            worst = np.partition(scores, -k)[-k] if k < len(rows) else -1.0
            best += [(-float(scores[place]), rows[place]["id"]) for place in np.flatnonzero(scores >= worst)]
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
        with self._transaction():
            self._release(old.user_id, old)
            if old.key is not None:
                self._db.execute(_SET, preference_values(new, content_hash))
            else:
                self._remove(old.user_id, old.id)
                self._insert(new, content_hash, vector)

    def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Forget memories with their cached embeddings and the summaries made of them; return the ids that existed."""
        deleted = []
        with self._transaction():
            for memory in self.get(owner, ids):
                self._release(owner, memory)
                if memory.key is not None:
                    self._uncache("preferences", owner, memory.id)
                    self._db.execute("DELETE FROM preferences WHERE owner = ? AND id = ?", (owner, memory.id))
                else:
                    self._uncache("memories", owner, memory.id)
                    self._remove(owner, memory.id)
                deleted.append(memory.id)
        return deleted

    def forget(self, owner: str) -> int:
        """Forget a user, with everything that was learnt from the user's texts; return how many memories that were."""
        with self._transaction():
            ids = [row["id"] for row in self._db.execute("SELECT id FROM memories WHERE owner = ?", (owner,))]
            kept = self.count(owner)["preferences"]
            for table in ("memories", "preferences", "embeddings", "centroids"):
                self._db.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608
            self._announce(owner, ids)
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(ids) + kept

    def centroid(self, owner: str) -> tuple[NDArray[np.float64] | None, int]:
        """Return the mean of the stored vectors as it is kept, and their number."""
        known = self.known(owner, ())
        return known.centroid, known.count

    def vectors(self, owner: str) -> Iterator[Vector]:
        """Yield every stored vector of a user, one at a time."""
        for row in self._db.execute("SELECT vector FROM memories WHERE owner = ? ORDER BY row", (owner,)):
            yield _vector(row["vector"])

    def count(self, owner: str) -> dict[str, int]:
        """Count a user's rows."""
        kinds = {str(kind): 0 for kind in MemoryType}
        sql = "SELECT kind, count(*) FROM memories WHERE owner = ? GROUP BY kind"
        kinds |= {kind: number for kind, number in self._db.execute(sql, (owner,))}

        def number(sql: str) -> int:
            return int(self._db.execute(sql, (owner,)).fetchone()[0])

        preferences = number("SELECT count(*) FROM preferences WHERE owner = ?")
        return {
            **kinds,
            "procedural": preferences,
            "preferences": preferences,
            "memories": sum(kinds.values()),
            "compressed": number("SELECT count(*) FROM memories WHERE owner = ? AND compressed = 1"),
            "visible": number("SELECT count(*) FROM memories WHERE owner = ? AND (compressed = 0 OR summary IS NULL)"),
            "cached": number("SELECT count(*) FROM embeddings WHERE owner = ?"),
        }

    def owners(self) -> list[str]:
        """Return everybody who has memories that are found by meaning."""
        return [row[0] for row in self._db.execute("SELECT DISTINCT owner FROM memories ORDER BY owner")]

    def visible_ids(self, owner: str) -> list[str]:
        """Return what the vector index should hold: all but archived memories."""
        sql = "SELECT id FROM memories WHERE owner = ? AND (compressed = 0 OR summary IS NULL) ORDER BY id"
        return [row["id"] for row in self._db.execute(sql, (owner,))]

    def visible(self, owner: str, ids: Sequence[str]) -> list[tuple[MemoryChunk, Vector]]:
        """Return those of these memories that the vector index should hold."""
        found = []
        for marks, part in _parts(ids):
            sql = (
                f"SELECT {MEMORY_COLUMNS}, vector FROM memories WHERE owner = ? AND id IN ({marks}) "  # noqa: S608
                "AND (compressed = 0 OR summary IS NULL)"
            )
            found += [(memory_of(row), _vector(row["vector"])) for row in self._db.execute(sql, (owner, *part))]
        return found

    def pending(self) -> list[Pending]:
        """Return what the vector index does not know yet, oldest first."""
        rows = self._db.execute("SELECT sequence, owner, id FROM outbox ORDER BY sequence")
        return [Pending(sequence=sequence, owner=owner, id=identifier) for sequence, owner, identifier in rows]

    def done(self, pending: Sequence[Pending]) -> None:
        """Strike off what the vector index has taken."""
        with self._transaction():
            self._db.executemany("DELETE FROM outbox WHERE sequence = ?", [(entry.sequence,) for entry in pending])

    def sessions(self, owner: str) -> list[str]:
        """Return the sessions that have uncompressed episodic memories, the oldest first."""
        rows = self._db.execute(
            "SELECT session FROM memories WHERE owner = ? AND kind = 'episodic' AND compressed = 0 "
            "GROUP BY session ORDER BY min(created_at), session",
            (owner,),
        )
        return [row["session"] for row in rows]

    def episodes(self, owner: str, session: str) -> list[tuple[MemoryChunk, str]]:
        """Return the uncompressed episodic memories of a session in the order of time, each with its hash."""
        rows = self._db.execute(
            f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND kind = 'episodic' AND compressed = 0 "  # noqa: S608
            "AND session = ? ORDER BY created_at, row",
            (owner, session),
        )
        return [(memory_of(row), row["hash"]) for row in rows]

    def archive(self, summary: Insertion, originals: Sequence[tuple[MemoryChunk, str]]) -> bool:
        """Store a summary and flag what it was made of, at once; False if any of that has changed meanwhile."""
        owner = summary.memory.user_id
        with self._transaction():
            for memory, content_hash in originals:
                same = self._db.execute(
                    "SELECT 1 FROM memories WHERE owner = ? AND id = ? AND hash = ? AND compressed = 0",
                    (owner, memory.id, content_hash),
                ).fetchone()
                if same is None:
                    return False
            self._insert(summary.memory, summary.content_hash, summary.vector)
            flagged = [(summary.memory.id, owner, memory.id) for memory, _ in originals]
            self._db.executemany(
                "UPDATE memories SET compressed = 1, summary = ? WHERE owner = ? AND id = ?", flagged
            )
            self._announce(owner, [memory.id for memory, _ in originals])
        return True

    def _insert(self, memory: MemoryChunk, content_hash: str, vector: Vector) -> None:
        ready = np.asarray(vector, np.float32)
        self._db.execute(_INSERT, (*memory_values(memory, content_hash), ready.tobytes()))
        self._shift(memory.user_id, ready, 1)
        self._announce(memory.user_id, [memory.id])

    def _remove(self, owner: str, identifier: str) -> None:
        row = self._db.execute(
            "DELETE FROM memories WHERE owner = ? AND id = ? RETURNING vector", (owner, identifier)
        ).fetchone()
        if row:
            self._shift(owner, _vector(row["vector"]), -1)
            self._announce(owner, [identifier])

    def _bump(self, write: Bump) -> None:
        table = "memories" if write.memory.key is None else "preferences"
        self._db.execute(
            f"UPDATE {table} SET times_seen = ?, updated_at = ? WHERE owner = ? AND id = ?",  # noqa: S608
            (write.memory.times_seen, stamp(write.memory.updated_at), write.memory.user_id, write.memory.id),
        )

    def _release(self, owner: str, memory: MemoryChunk) -> None:
        """Undo the compression that `memory` took part in: its summary goes, the other originals are shown again."""
        summary = memory.id if memory.compression_source else memory.summary_id
        if summary is None:
            return
        released = self._db.execute(
            "UPDATE memories SET compressed = 0, summary = NULL WHERE owner = ? AND summary = ? RETURNING id",
            (owner, summary),
        ).fetchall()
        self._announce(owner, [row["id"] for row in released])
        self._remove(owner, summary)

    def _shift(self, owner: str, vector: Vector, step: int) -> None:
        """Move the sum behind the centroid by one vector; with the last vector it goes, and takes its rounding along."""
        row = self._db.execute("SELECT total, count FROM centroids WHERE owner = ?", (owner,)).fetchone()
        count = (row["count"] if row else 0) + step
        if count == 0:
            self._db.execute("DELETE FROM centroids WHERE owner = ?", (owner,))
            return
        moved = step * np.asarray(vector, np.float64)
        total = moved if row is None else np.frombuffer(row["total"], np.float64) + moved
        self._db.execute("INSERT OR REPLACE INTO centroids VALUES (?, ?, ?)", (owner, total.tobytes(), count))

    def _cache(self, owner: str, vectors: Mapping[str, Vector], keep: int) -> None:
        rows = [(owner, one, np.asarray(vector, np.float32).tobytes()) for one, vector in vectors.items()]
        self._db.executemany("INSERT OR IGNORE INTO embeddings (owner, hash, vector) VALUES (?, ?, ?)", rows)
        self._db.execute(
            "DELETE FROM embeddings WHERE row IN "
            "(SELECT row FROM embeddings WHERE owner = ? ORDER BY row DESC LIMIT -1 OFFSET ?)",
            (owner, keep),
        )

    def _uncache(self, table: str, owner: str, identifier: str) -> None:
        self._db.execute(
            f"DELETE FROM embeddings WHERE owner = ? AND hash = (SELECT hash FROM {table} WHERE owner = ? AND id = ?)",  # noqa: S608
            (owner, owner, identifier),
        )

    def _announce(self, owner: str, ids: Sequence[str]) -> None:
        self._db.executemany("INSERT INTO outbox (owner, id) VALUES (?, ?)", [(owner, one) for one in ids])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _expect(self, name: str, value: str, file: Path) -> None:
        self._db.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, value))
        (found,) = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        if found != value:
            self._db.close()
            raise StoreConflictError(
                f"{file} was made with {name} {found!r}, not {value!r}: open it with {found!r}, or use another folder"
            )


def _parts(values: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield marks and values, as many at once as a statement takes."""
    distinct = list(dict.fromkeys(values))
    for start in range(0, len(distinct), _AT_ONCE):
        part = distinct[start : start + _AT_ONCE]
        yield ", ".join("?" * len(part)), part


def _vector(blob: bytes) -> Vector:
    return np.frombuffer(blob, np.float32)
