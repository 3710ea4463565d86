"""Rows as they are exported and imported: the trusted way in, which may say what ingestion decides itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memstory_reference.ports import NewId, Tree
from memstory_reference.systems.pipeline.ingest.chunking import content_hash
from memstory_reference.systems.pipeline.ingest.validation import PipelineInputError, checked_name, checked_type
from memstory_reference.systems.pipeline.memory import ROLES, USER, MemoryChunk, MemoryType
from memstory_reference.systems.pipeline.reading.cleaning import clean
from memstory_reference.systems.pipeline.reading.preference_keys import preference_key

_GREATEST, _LEAST = 1e30, 1e-30
"""Beyond them a length is no number any more."""

_Check = Callable[[str, Tree], Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A memory to be written as it is, and its vector if the row brought one."""

    memory: MemoryChunk
    content_hash: str
    vector: Sequence[float] | None


def exported(memory: MemoryChunk) -> dict[str, Tree]:
    """Return the row of a memory, from which `imported` makes the same one."""
    return {
        "id": memory.id,
        "text": memory.content,
        "kind": str(memory.memory_type),
        "session": memory.session_id,
        "importance": memory.importance,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        "key": memory.key,
        "role": memory.role,
        "source": memory.source,
        "times_seen": memory.times_seen,
        "compressed": memory.compressed,
        "summary_id": memory.summary_id,
        "source_session_id": memory.source_session_id,
        "compression_source": memory.compression_source,
        "replaced_by": memory.replaced_by,
    }


def imported(rows: Sequence[Tree], user_id: str, *, now: datetime, new_id: NewId) -> list[Import]:
    """Return the memories of `rows`; PipelineInputError names the row and the field that cannot be taken."""
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence):
        raise PipelineInputError(f"rows: expected a list of rows, got {rows!r:.80}")
    return [_imported(f"rows[{number}]", row, user_id, now=now, new_id=new_id) for number, row in enumerate(rows)]


def _imported(where: str, row: Tree, user_id: str, *, now: datetime, new_id: NewId) -> Import:
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str) or not clean(row["text"]):
        raise PipelineInputError(f"{where}: expected a mapping with a `text` that is not empty, got {row!r:.80}")
    unknown = [name for name in row if name not in _CHECKS]
    if unknown:
        raise PipelineInputError(f"{where}: unknown field {unknown[0]!r:.80}; known: {', '.join(_CHECKS)}")
    given = {name: _CHECKS[name](f"{where}.{name}", value) for name, value in row.items() if value is not None}
    content = clean(given["text"])
    identity = content_hash(content)
    kind = given.get("kind", MemoryType.EPISODIC)
    key = given.get("key") or preference_key(content, identity)
    created = given.get("created_at", now)
    memory = MemoryChunk(
        id=given.get("id") or new_id(),
        user_id=user_id,
        session_id=given.get("session", "imported"),
        memory_type=kind,
        content=content,
        importance=given.get("importance", 1.0),
        created_at=created,
        updated_at=given.get("updated_at", created),
        key=key if kind is MemoryType.PROCEDURAL else None,
        role=given.get("role", USER),
        source=given.get("source"),
        times_seen=given.get("times_seen", 1),
        compressed=given.get("compressed", False),
        summary_id=given.get("summary_id"),
        source_session_id=given.get("source_session_id"),
        compression_source=given.get("compression_source", False),
        replaced_by=given.get("replaced_by") if kind is MemoryType.PROCEDURAL else None,
    )
    return Import(memory=memory, content_hash=identity, vector=given.get("vector"))


def _number(where: str, value: Tree) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise PipelineInputError(f"{where}: {value!r:.80} is no number from 0 to 1")
    return float(value)


def _count(where: str, value: Tree) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PipelineInputError(f"{where}: {value!r:.80} is no whole number from 1 on")
    return value


def _flag(where: str, value: Tree) -> bool:
    if not isinstance(value, bool):
        raise PipelineInputError(f"{where}: {value!r:.80} is neither true nor false")
    return value


def _moment(where: str, value: Tree) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise PipelineInputError(f"{where}: {value!r:.80} is no moment such as 2026-01-20T12:00:00Z") from error
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _role(where: str, value: Tree) -> str:
    if value not in ROLES:
        raise PipelineInputError(f"{where}: {value!r:.80} is unknown; allowed: {', '.join(ROLES)}")
    return str(value)


def _vector(where: str, value: Tree) -> list[float]:
    numbers = value if isinstance(value, list | tuple) else [value]
    is_taken = all(type(one) in (int, float) and abs(one) <= _GREATEST for one in numbers)
    length = math.hypot(*numbers) if is_taken else 0.0
    if not length > _LEAST:
        raise PipelineInputError(f"{where}: expected numbers up to {_GREATEST:g} that are not all 0, got {value!r:.80}")
    return [one / length for one in numbers]


_CHECKS: Mapping[str, _Check] = {
    "text": lambda _, value: value,
    "id": checked_name,
    "kind": checked_type,
    "session": checked_name,
    "importance": _number,
    "created_at": _moment,
    "updated_at": _moment,
    "key": checked_name,
    "role": _role,
    "source": checked_name,
    "times_seen": _count,
    "compressed": _flag,
    "summary_id": checked_name,
    "source_session_id": checked_name,
    "compression_source": _flag,
    "replaced_by": checked_name,
    "vector": _vector,
}
