"""Between the harness's values and the manager memory's: items, hits, receipts, tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from memstory.contract.errors import StoryError
from memstory.contract.target import Hit, Item, ReceiptItem, Scope, Tree
from memstory_reference.errors import InputError
from memstory_reference.systems.manager.manager import StoredMemory
from memstory_reference.systems.manager.memories.memory import (
    Memory,
    MemoryType,
    SearchResult,
    expires_at,
    memory_type_of,
    stored_moment,
)
from memstory_reference.systems.manager.memories.rows import CONTEXT_KEY, NewMemory
from memstory_reference.text.secret_guard import left_out


def types_of(kinds: Iterable[str]) -> list[MemoryType]:
    """Return the types that are meant; an unknown one is refused."""
    return [memory_type_of(kind) for kind in kinds]


def new_memory(item: Item, scope: Scope) -> NewMemory:
    """Return what an item asks to remember: with a key a context entry, else a fact unless it says its kind."""
    default = MemoryType.FACT if item.key is None else MemoryType.CONTEXT
    return NewMemory(
        content=item.text,
        memory_type=default if item.kind is None else memory_type_of(item.kind),
        metadata=item.metadata,
        session=scope.session,
        key=item.key,
    )


def outcome_of(stored: StoredMemory) -> str:
    """Return `bumped` for a fact that is said again, `updated` for a context key that is written again."""
    again = "bumped" if stored.memory.memory_type is MemoryType.FACT else "updated"
    return again if stored.is_known else "stored"


def receipt_item(memory: Memory, outcome: str) -> ReceiptItem:
    """Return what happened to one item."""
    return ReceiptItem(
        id=memory.id,
        text=memory.content,
        outcome=outcome,
        reason=left_out(memory.content),
        kind=memory.memory_type.value,
        key=key_of(memory),
    )


def hit_of(memory: Memory, score: float | None = None) -> Hit:
    """Return a memory; one that was looked up or listed has no score."""
    return Hit(
        id=memory.id,
        text=memory.content,
        score=score,
        kind=memory.memory_type.value,
        key=key_of(memory),
        created_at=memory.created_at.isoformat(),
        metadata=memory.metadata,
    )


def memory_of_row(row: Mapping[str, Tree]) -> Memory:
    """Return the memory of an exported row, with its id and its moment."""
    return Memory(
        id=str(row["id"]),
        content=str(row["text"]),
        memory_type=memory_type_of(row["kind"]),
        created_at=stored_moment(row["created_at"]),
        metadata=dict(row.get("metadata") or {}),
    )


def found_hit(found: SearchResult) -> Hit:
    """Return a memory that was found by meaning."""
    return hit_of(found.memory, found.score)


def key_of(memory: Memory) -> str | None:
    """Return the key of a context entry; a fact that carries the same metadata has none."""
    key: Tree = memory.metadata.get(CONTEXT_KEY)
    return key if memory.memory_type is MemoryType.CONTEXT else None


def formula(args: Mapping[str, Tree]) -> Tree:
    """Compute the expiries of `expires_at: [[type, created_at], …]`."""
    if set(args) != {"expires_at"}:
        raise StoryError("inspect: formula takes `expires_at`: a list of [type, created_at]")
    try:
        ends = [expires_at(memory_type_of(kind), datetime.fromisoformat(made)) for kind, made in args["expires_at"]]
    except (InputError, TypeError, ValueError) as error:
        raise StoryError(f"inspect: formula expires_at: {error}") from error
    return [end and end.isoformat() for end in ends]
