"""A mapping: what each operation of a memory sends to a server, how its reply is read, and what that makes possible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from memstory.contract.target import Capability, Tree
from memstory.language.words.memories import CONDITIONS
from memstory.language.words.word import ITEM_KEYS, LISTS
from memstory.targets.tables.replies import Path, Rows, ScoreKind
from memstory.targets.tables.templates import Template, parse_template, placeholders, takes_items

OPERATIONS: Final = (
    *("add", "get", "get_key", "search", "list", "update", "delete", "delete_all"),
    *("feedback", "context", "settle"),
)
"""The operations that a table can have; `get_key` is `get` by the caller's key, `delete_all` forgets a whole scope."""

ALWAYS: Final = ("user", "user_hash", "session", "workspace", "case", "seed", "now")
_REF: Final = ("id", "key", "kind")
_ITEM: Final = ("text", "key", "kind", "metadata", "ttl", "source", "role", "new_id", "own_id")
_OLD: Final = ("old_text", "old_key", "old_kind")
_QUERY: Final = ("query", "k", "kinds", "where", "min_score", "token_budget", "as_of")

STARTING: Final = ("command", "env", "cwd")
"""The keys that say how a server is started; they have placeholders too."""

STARTING_NAMES: Final = ("python",)

NAMES: Final[Mapping[str, Sequence[str]]] = {
    "add": _ITEM,
    "get": _REF,
    "get_key": _REF,
    "search": _QUERY,
    "list": ("kinds", "limit", "page", "offset", "page_size"),
    "update": (*_REF, *_ITEM, *_OLD),
    "delete": (*_REF, *_OLD),
    "delete_all": ("kind",),
    "feedback": (*_REF, "value", *_OLD),
    "context": _QUERY,
    "settle": (),
    "setup": (),
    "teardown": (),
}
"""The placeholders of each operation, beside `ALWAYS` and what earlier calls have saved."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: `spec` is the transport's own part of the table (`tool` and `args`; `method`, `path`, `body` …).

    `save` keeps parts of the reply under names for later calls; a failure that `accepts` matches is none.
    """

    where: str
    spec: Mapping[str, Template]
    save: Mapping[str, Path] = field(default_factory=dict)
    accepts: re.Pattern[str] | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """The placeholders that it uses."""
        return frozenset(placeholders(dict(self.spec)))

    @cached_property
    def takes_items(self) -> bool:
        """Whether one call takes many items."""
        return takes_items(dict(self.spec))


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What one operation does: its calls in order; the reply of the last one is read."""

    name: str
    where: str
    calls: Sequence[Call]
    rows: Rows | None = None
    id: Template = None
    keep: Mapping[str, tuple[Path, Template]] = field(default_factory=dict)
    look_up: bool = False
    missing: re.Pattern[str] | None = None
    refuses: re.Pattern[str] | None = None
    fails: re.Pattern[str] | None = None
    outcomes: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    scores: ScoreKind | None = None
    overfetch: int = 1
    k_most: int | None = None
    page_size: int | None = None
    batch: int = 100

    @cached_property
    def names(self) -> frozenset[str]:
        """The placeholders that it uses, in calls and conditions."""
        conditions = (placeholders(template) for _, template in self.keep.values())
        return frozenset().union(*(call.names for call in self.calls), *conditions, placeholders(self.id))

    @property
    def takes_items(self) -> bool:
        """Whether one run of its calls takes many items."""
        return any(call.takes_items for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One `[targets.NAME]` table; `settings` are the transport's own keys, as they were written."""

    name: str
    where: str
    type: str
    settings: Mapping[str, Tree]
    operations: Mapping[str, Operation]
    setup: Sequence[Call] = ()
    teardown: Sequence[Call] = ()
    serial: bool = False
    about: Mapping[str, str] = field(default_factory=dict)
    can: frozenset[Capability] = frozenset()
    cannot: frozenset[Capability] = frozenset()


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
