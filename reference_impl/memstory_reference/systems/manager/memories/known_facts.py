"""Facts whose id does not follow from their words, because they were changed or come from version 1 (MF-20)."""

from __future__ import annotations

from collections.abc import Iterable

from memstory_reference.systems.manager.memories.memory import Memory, MemoryType
from memstory_reference.systems.manager.memories.rows import fact_id, is_reworded, is_same_fact


class KnownFacts:
    """Where each owner's changed facts are; a row that it names may have changed or gone since, and is looked at."""

    def __init__(self) -> None:
        self._changed: dict[str, dict[str, str]] = {}

    def note(self, owner: str, memories: Iterable[Memory]) -> None:
        """Take memories into account that were read or are being written."""
        for memory in memories:
            if is_reworded(memory):
                self._changed.setdefault(owner, {})[fact_id(memory.content)] = memory.id

    def ids(self, owner: str, memory: Memory) -> list[str]:
        """Return the ids under which a memory may be stored already; a fact under more than its own."""
        if memory.memory_type is not MemoryType.FACT:
            return [memory.id]
        words = fact_id(memory.content)
        changed = self._changed.get(owner, {}).get(words)
        return list(dict.fromkeys([memory.id, words, *([changed] if changed else [])]))


def same_fact(memory: Memory, others: Iterable[Memory | None]) -> Memory | None:
    """Return the one of `others` that says the same fact."""
    if memory.memory_type is not MemoryType.FACT:
        return None
    facts = (one for one in others if one and one.memory_type is MemoryType.FACT)
    return next((one for one in facts if is_same_fact(one.content, memory.content)), None)
