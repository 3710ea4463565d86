"""A user's profile is a set of facts, and of two statements of one field the newer one holds (M-16, MF-20); pure."""

from __future__ import annotations

from collections.abc import Sequence

from memstory_reference.systems.manager.memories.memory import MemoryType, SearchResult

CATEGORY, PROFILE, FIELD = "category", "user_profile", "field"


def newest_of_each_field_first(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Return the results, statements of one profile field in their places by age, the newest first.

    The older ones stay: a field such as the interests may hold several.
    """
    newest: dict[str, list[SearchResult]] = {}
    for result in sorted(results, key=lambda one: one.memory.created_at):
        if (field := field_of(result)) is not None:
            newest.setdefault(field, []).append(result)
    fields = (field_of(result) for result in results)
    return [result if field is None else newest[field].pop() for result, field in zip(results, fields, strict=True)]


def field_of(result: SearchResult) -> str | None:
    """Return the profile field that a fact states, if it states one."""
    metadata = result.memory.metadata
    field = metadata.get(FIELD)
    is_stated = result.memory.memory_type is MemoryType.FACT and metadata.get(CATEGORY) == PROFILE
    return field if is_stated and isinstance(field, str) else None
