"""Rows of the six types of version 1 as the three types of version 2 (M-03, MF-19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS, Limits, checked_memory
from memstory_reference.systems.manager.memories.memory import Memory, MemoryType, stored_moment
from memstory_reference.systems.manager.memories.rows import CONTEXT_IDS, encode_metadata

TYPE_OF_V1 = {
    "conversation": MemoryType.CONVERSATION,
    "observation": MemoryType.CONVERSATION,
    "fact": MemoryType.FACT,
    "preference": MemoryType.FACT,
    "event": MemoryType.CONTEXT,
    "task": MemoryType.CONTEXT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What happened to the old rows; `skipped` and `warnings` name them by id."""

    memories: tuple[Memory, ...]
    skipped: tuple[str, ...]
    warnings: tuple[str, ...]


def migrate_rows(rows: Iterable[Mapping[str, Tree]], limits: Limits = DEFAULT_LIMITS) -> Migration:
    """Map old rows `{id, content, type, created_at, metadata}`; a row that cannot be read is skipped and named."""
    memories, skipped, warnings = [], [], []
    for row in rows:
        name = str(row.get("id", "(no id)")) if isinstance(row, Mapping) else f"(no row) {row!r:.40}"
        try:
            memory = _migrated_row(row, limits)
        except InputError as error:
            skipped.append(f"{name}: {error}")
            continue
        memories.append(memory)
        if memory.memory_type is MemoryType.CONTEXT:
            warnings.append(f"{name}: {row['type']} became context, and ends with the day on which it was made")
    return Migration(memories=tuple(memories), skipped=tuple(skipped), warnings=tuple(warnings))


def _migrated_row(row: Mapping[str, Tree], limits: Limits) -> Memory:
    if not isinstance(row, Mapping):
        raise InputError("a row has the keys id, content, type, created_at, metadata")
    old_type = str(row.get("type", "")).lower()
    if old_type not in TYPE_OF_V1:
        raise InputError(f"type {row.get('type')!r:.60} is none of {', '.join(TYPE_OF_V1)}")
    content, identifier = checked_memory(row.get("content"), limits), row.get("id")
    if not isinstance(identifier, str) or not identifier.strip():
        raise InputError("id is missing")
    if identifier.startswith(CONTEXT_IDS):
        raise InputError(f"ids that begin with {CONTEXT_IDS!r} are the memory's own")
    metadata = row.get("metadata") or {}
    encode_metadata(metadata)
    return Memory(
        id=identifier,
        content=content,
        memory_type=TYPE_OF_V1[old_type],
        created_at=stored_moment(row.get("created_at")),
        metadata=dict(metadata),
    )
