"""What a target can do, as its table shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memstory.contract.target import Capability
from memstory.language.words.memories import CONDITIONS
from memstory.language.words.word import ITEM_KEYS, LISTS
from memstory.targets.mapping.table import STARTING, Operation, Table
from memstory.targets.mapping.templates import parse_template, placeholders

_READING: Final = ("get", "get_key", "search", "list")
USER_NAMES: Final = frozenset({"user", "user_hash"})


def capabilities_of(table: Table) -> frozenset[Capability]:
    """Return what follows from the operations, with what the table adds and takes away."""
    return (frozenset(_derived(table)) | table.can) - table.cannot


def names_user(table: Table) -> bool:
    """Return whether the server itself is one of the user's own."""
    return bool(
        USER_NAMES & {name for key in STARTING for name in placeholders(parse_template(table.settings.get(key)))}
    )


def _derived(table: Table) -> Iterator[Capability]:
    operations = table.operations
    yield from (name for name in ("add", "list", "update", "delete", "feedback", "context") if name in operations)
    if "search" in operations:
        yield "search"
        yield from (word for name, word in CONDITIONS.items() if name in operations["search"].names)
        if operations["search"].scores is not None:
            yield "search.scores"
    if "add" in operations:
        given = operations["add"].names | ({"key"} if "own_id" in operations["add"].names else set())
        yield from (key.capability for name, key in ITEM_KEYS.items() if name in given)
        yield from [LISTS] if "metadata" in given else []
    if "get" in operations:
        yield "get.id"
    if finds_by_key(operations):
        yield "get.key"
    if "delete" in operations and (operations["delete"].look_up or operations["delete"].missing):
        yield "delete.reports_missing"
    if {"delete", "delete_all"} <= set(operations):
        yield "delete.scope"
    apart = [operations[name] for name in ("add", *_READING) if name in operations]
    if apart and (names_user(table) or all(USER_NAMES & one.names for one in apart)):
        yield "scope.user"
    if apart and all("session" in operations[name].names for name in ("add", "search", "list") if name in operations):
        yield "scope.session"


def finds_by_key(operations: Mapping[str, Operation]) -> bool:
    """Return whether a memory can be looked up by the caller's key."""
    return "get_key" in operations or ("get" in operations and "key" in operations["get"].names)
