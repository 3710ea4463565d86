"""A table as values: what each operation sends to the server, how its reply is read, and the capabilities of both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.target import OLDER, Capability, Tree
from memstory.language.words.memories import CONDITIONS, ITEM_CAPABILITIES
from memstory.language.words.word import LISTS
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
_QUERY: Final = ("query", "top_k", "kinds", "where", "min_score", "token_budget", "as_of")

STARTING: Final = ("command", "env", "cwd", OLDER)
"""The keys that say how a server is started; they have placeholders too."""

STARTING_NAMES: Final[Mapping[str, Sequence[str]]] = {"mcp": ("python",), "http": ("python", "port")}
"""The placeholders of these keys beside `ALWAYS`, by the type of the table."""

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
    max_top_k: int | None = None
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
class ToolTable:
    """One `[targets.NAME]` table; `settings` are the transport's own keys, as they were written.

    `folder` is that of its file, beside which the server's own files are looked for.
    """

    name: str
    where: str
    type: str
    folder: str = "."
    settings: Mapping[str, Tree]
    operations: Mapping[str, Operation]
    setup: Sequence[Call] = ()
    teardown: Sequence[Call] = ()
    serial: bool = False
    about: Mapping[str, str] = field(default_factory=dict)
    can: frozenset[Capability] = frozenset()
    cannot: frozenset[Capability] = frozenset()


USER_NAMES: Final = frozenset({"user", "user_hash"})
_OWN: Final = USER_NAMES | {"case", "workspace"}
"""Placeholders whose values no other case of a server has."""


def capabilities_of(table: ToolTable) -> frozenset[Capability]:
    """Return what follows from the operations, plus `capabilities` of the table, minus its `lacks`."""
    return (frozenset(_derive_capabilities(table)) | table.can) - table.cannot


def names_user(table: ToolTable) -> bool:
    """Return whether the command, env or cwd names {user}, so that each user has a server."""
    return bool(
        USER_NAMES & {name for key in STARTING for name in placeholders(parse_template(table.settings.get(key)))}
    )


def _derive_capabilities(table: ToolTable) -> Iterator[Capability]:
    operations = table.operations
    yield from (name for name in ("add", "list", "update", "delete", "feedback", "context") if name in operations)
    if "search" in operations:
        yield "search"
        yield from (word for name, word in CONDITIONS.items() if name in operations["search"].names)
        if operations["search"].scores is not None:
            yield "search.scores"
    if "add" in operations:
        given = operations["add"].names | ({"key"} if "own_id" in operations["add"].names else set())
        yield from (word for word in ITEM_CAPABILITIES if word.removeprefix("add.") in given)
        yield from [LISTS] if "metadata" in given else []
        yield from ["add.verbatim"] if "text" in given else []
    if "get" in operations:
        yield "get.id"
    if finds_by_key(operations):
        yield "get.key"
    if "delete" in operations and (operations["delete"].look_up or operations["delete"].missing):
        yield "delete.reports_missing"
    if "delete" in operations and ("delete_all" in operations or lists_by_user(table)):
        yield "delete.scope"
    asked = [operations[name] for name in ("add", "search", "list") if name in operations]
    # What else a table has is about one memory: that it shows or forgets another user's is for stories to find.
    apart = [one for one in asked if one.name != "list" or "search" not in operations]
    if apart and (names_user(table) or all(USER_NAMES & one.names for one in apart)):
        yield "scope.user"
    if asked and all("session" in one.names for one in asked):
        yield "scope.session"


def lists_by_user(table: ToolTable) -> bool:
    """Return whether a list shows one user alone, so that all of theirs can be deleted one after the other."""
    listed = table.operations.get("list")
    return listed is not None and (names_user(table) or bool(USER_NAMES & listed.names))


def check_sharing(table: ToolTable) -> None:
    """Raise SetupError for an operation that would show, change or forget what other cases keep on the same server."""
    if names_user(table):
        return
    for operation in table.operations.values():
        by_id = operation.name not in _OF_MANY and {"id", "old_text"} & operation.names
        if operation.name != "settle" and not by_id and not _OWN & operation.names:
            does = _HARM.get(operation.name, "would reach what others keep there")
            raise SetupError(
                f"{operation.where} names no {{user}}: on a server that others use too it {does}. Name {{user}} in "
                "what it sends or under 'keep', or let memstory start a server for each story with 'command'."
            )


_OF_MANY: Final = frozenset({"add", "get_key", "search", "list", "context", "delete_all"})
_HARM: Final = {
    "add": "would mix what users say",
    "search": "would show what others remember",
    "list": "would show what others remember",
    "context": "would show what others remember",
    "delete": "would forget what others remember",
    "delete_all": "would forget what others remember",
}


def finds_by_key(operations: Mapping[str, Operation]) -> bool:
    """Return whether a memory can be looked up by the caller's key."""
    return "get_key" in operations or ("get" in operations and "key" in operations["get"].names)
