"""Rows as they are exported and imported: the trusted way in, which may say what ingestion decides itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    MAX_OWNER_CHARACTERS,
    checked_choice,
    checked_count,
    checked_memory,
    checked_moment,
    checked_number,
    checked_owner,
    checked_text,
    limits_of,
    short_repr,
)
from memstory_reference.ports import NewId
from memstory_reference.systems.pipeline.chunk import (
    ROLES,
    ChunkType,
    MemoryChunk,
    Write,
    checked_flag,
    checked_type,
    content_hash,
)
from memstory_reference.systems.pipeline.reading import clean, preference_key
from memstory_reference.systems.pipeline.settings import PipelineSettings

_GREATEST, _LEAST = 1e30, 1e-30
"""A value beyond these has no finite length."""

_MOST_TIMES = 10**9

_RENAMED = {"text": "content", "kind": "memory_type", "session": "session_id"}
"""What a memory calls otherwise than a row."""

_Check = Callable[[Tree, str], Tree]


def export_row(memory: MemoryChunk) -> dict[str, Tree]:
    """Return the row of a memory, from which `import_rows` makes the same one."""
    row = {name: getattr(memory, _RENAMED.get(name, name)) for name in _CHECKS if name != "vector"}
    times = {name: row[name].isoformat() for name in ("created_at", "updated_at")}
    return {**row, **times, "kind": str(memory.memory_type)}


def import_rows(
    rows: Sequence[Tree], user_id: str, *, now: datetime, new_id: NewId, config: PipelineSettings
) -> list[Write]:
    """Return the memories of `rows` with the vectors that they brought; InputError names row and field."""
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence):
        raise InputError(f"rows: expected a list of rows, not {type(rows).__name__}")
    ready = [
        _import_row(f"rows[{number}]", row_without_secrets(row, config), user_id, now=now, new_id=new_id)
        for number, row in enumerate(rows)
    ]
    for number, one in enumerate(ready):
        checked_memory(one.memory.content, limits_of(config), f"rows[{number}].text")
    return ready


def row_without_secrets(row: Tree, config: PipelineSettings) -> Tree:
    """Return a row without the secrets in its text, and then without the vector that was computed of them."""
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str):
        return row
    (text,) = config.admit(row["text"])
    return (
        row if text == row["text"] else {**{name: one for name, one in row.items() if name != "vector"}, "text": text}
    )


def _import_row(where: str, row: Tree, user_id: str, *, now: datetime, new_id: NewId) -> Write:
    if not isinstance(row, Mapping):
        raise InputError(f"{where}: expected a mapping with a `text`, not {type(row).__name__}")
    if not isinstance(row.get("text"), str) or not clean(row["text"]):
        raise InputError(f"{where}: `text` must be a text that is not empty")
    unknown = [name for name in row if name not in _CHECKS]
    if unknown:
        raise InputError(f"{where}: unknown field {short_repr(unknown[0])}; known: {', '.join(_CHECKS)}")
    given = {name: _CHECKS[name](value, f"{where}.{name}") for name, value in row.items() if value is not None}
    usual = {
        "kind": ChunkType.EPISODIC,
        "session": "imported",
        "importance": 1.0,
        "created_at": now,
        "updated_at": given.get("created_at", now),
    }
    fields = {**usual, **given, "text": clean(given["text"]), "id": given.get("id") or new_id()}
    vector = np.asarray(fields.pop("vector", ()), np.float32)
    memory = MemoryChunk(user_id=user_id, **{_RENAMED.get(name, name): value for name, value in fields.items()})
    if memory.memory_type is not ChunkType.PROCEDURAL:
        return Write(memory=replace(memory, key=None, replaced_by=None), vector=vector)
    key = memory.key or preference_key(memory.content, content_hash(memory.content))
    return Write(memory=replace(memory, key=key), vector=vector)


def _moment(value: Tree, where: str) -> datetime:
    return checked_moment(value, where, UTC)


def _vector(value: Tree, where: str) -> list[float]:
    numbers = value if isinstance(value, list | tuple) else [value]
    is_taken = all(type(one) in (int, float) and abs(one) <= _GREATEST for one in numbers)
    length = math.hypot(*numbers) if is_taken else 0.0
    if not length > _LEAST:
        raise InputError(f"{where} is not allowed; allowed: a list of numbers up to {_GREATEST:g} that are not all 0")
    return [one / length for one in numbers]


_CHECKS: Mapping[str, _Check] = {
    "text": lambda value, _: value,
    "id": checked_owner,
    "kind": checked_type,
    "session": checked_owner,
    "importance": lambda value, where: checked_number(value, where, 0, 1),
    "created_at": _moment,
    "updated_at": _moment,
    "key": lambda value, where: checked_text(value, where, MAX_OWNER_CHARACTERS),
    "role": lambda value, where: checked_choice(value, where, ROLES),
    "source": checked_owner,
    "times_seen": lambda value, where: checked_count(value, where, 1, _MOST_TIMES),
    "compressed": checked_flag,
    "summary_id": checked_owner,
    "source_session_id": checked_owner,
    "compression_source": checked_flag,
    "replaced_by": checked_owner,
    "vector": _vector,
}
