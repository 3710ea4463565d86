"""The tables of the pipeline, and how their rows become memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.sql_database import SqlDatabase, SqlRow
from memstory_reference.storage.vector_matrix import normalized_or_none
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk
from memstory_reference.systems.pipeline.ingest.chunking import content_hash


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
        sql += " AND (compressed = 0 OR summary IS NULL)"
    if admission.session is not None:
        sql += " AND (kind <> 'working' OR session = ?)"
        parameters.append(admission.session)
    else:
        sql += " AND (kind <> 'working' OR created_at >= ?)"
        parameters.append(stamp(admission.working_since))
    return sql, parameters


def stamp(moment: datetime) -> str:
    """Return a moment as texts that sort by time."""
    return moment.isoformat(timespec="microseconds")


def dimension_of(database: SqlDatabase) -> int | None:
    """Return how many numbers each vector of the store has; None before the first."""
    row = database.execute("SELECT value FROM about WHERE name = 'dimension'").fetchone()
    if row and not row["value"].isdecimal():
        raise UnavailableError(
            f"{database.place} is damaged: its vectors have {row['value']!r:.40} numbers; restore a backup, "
            "or use another folder"
        )
    return int(row["value"]) if row else None


def total_of(row: SqlRow, held: int | None) -> NDArray[np.float64] | None:
    """Return the sum behind a centroid; None of a damaged one: no sum of so many vectors of length 1 is as long."""
    blob, count = row["total"], row["count"]
    if not isinstance(count, int) or not isinstance(blob, bytes) or len(blob) != 8 * (held or 0):
        return None
    total: NDArray[np.float64] = np.frombuffer(blob, np.float64)
    return total if count > 0 and (np.abs(total) <= 2 * count).all() else None  # false of NaN too


def check_dimension(held: int | None, vector: NDArray[np.float32]) -> None:
    """Raise StoreConflictError for a vector that cannot be compared with those of the store."""
    if held not in (None, len(vector)):
        raise StoreConflictError(
            f"the store holds vectors of {held} numbers, not {len(vector)}: another model answers under the same name. "
            "Use the model that the store was made with, or another folder"
        )


def vector_of(blob: bytes | None) -> NDArray[np.float32]:
    """Return a stored vector; one of no numbers where there is none, or the file was damaged."""
    return np.frombuffer(blob if blob and len(blob) % 4 == 0 else b"", np.float32)


def is_countable(vector: NDArray[np.float32], held: int | None) -> bool:
    """Say whether a stored vector can be compared with the others."""
    return len(vector) == held and normalized_or_none(vector) is not None


def memory_values(memory: MemoryChunk, content_hash: str) -> tuple[object, ...]:
    """Return the values of `MEMORY_COLUMNS`."""
    return (
        memory.user_id,
        memory.id,
        str(memory.memory_type),
        memory.content,
        content_hash,
        memory.session_id,
        memory.importance,
        stamp(memory.created_at),
        stamp(memory.updated_at),
        memory.role,
        memory.source,
        memory.times_seen,
        int(memory.compressed),
        memory.summary_id,
        memory.source_session_id,
        int(memory.compression_source),
    )


def preference_values(memory: MemoryChunk, content_hash: str) -> tuple[object, ...]:
    """Return the values of `PREFERENCE_COLUMNS`."""
    return (
        memory.user_id,
        memory.id,
        memory.key,
        memory.content,
        content_hash,
        memory.session_id,
        memory.importance,
        stamp(memory.created_at),
        stamp(memory.updated_at),
        memory.role,
        memory.source,
        memory.times_seen,
        memory.replaced_by,
    )


def sound_memories(database: SqlDatabase, sql: str, values: Sequence[object]) -> Iterator[tuple[MemoryChunk, str]]:
    """Yield the memories in rows of `memories` or `preferences`, each with its hash; damaged ones are left out."""
    for row in database.rows(sql, values):
        try:
            yield _verify(row), row["hash"]
        except (ValueError, TypeError, AttributeError) as damage:
            advice = "Restore a backup, or delete it by its id"
            database.leave_out(f"memory {row['id']}", damage, advice, (row["owner"], row["id"]))


def _verify(row: SqlRow) -> MemoryChunk:
    if content_hash(row["content"]) != row["hash"]:
        raise ValueError("its text was changed outside memstory")
    if not isinstance(row["importance"], (int, float)) or isinstance(row["session"], bytes):
        raise TypeError("its session or its importance is none")
    return _preference_of(row) if "key" in row.keys() else _memory_of(row)  # noqa: SIM118  (a row is not a dict)


def _memory_of(row: SqlRow) -> MemoryChunk:
    return MemoryChunk(
        memory_type=ChunkType(row["kind"]),
        compressed=bool(row["compressed"]),
        summary_id=row["summary"],
        source_session_id=row["source_session"],
        compression_source=bool(row["compression_source"]),
        **_common(row),
    )


def _preference_of(row: SqlRow) -> MemoryChunk:
    return MemoryChunk(memory_type=ChunkType.PROCEDURAL, key=row["key"], replaced_by=row["replaced_by"], **_common(row))


def _common(row: SqlRow) -> dict[str, Any]:
    return {
        "id": row["id"],
        "user_id": row["owner"],
        "session_id": row["session"],
        "content": row["content"],
        "importance": row["importance"],
        "created_at": datetime.fromisoformat(row["created_at"]),
        "updated_at": datetime.fromisoformat(row["updated_at"]),
        "role": row["role"],
        "source": row["source"],
        "times_seen": row["times_seen"],
    }
