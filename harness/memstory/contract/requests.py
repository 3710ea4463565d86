"""The operations of a target as data: what a step asks, what crosses to another process, what `perform` carries out.

A field is an argument of the operation, and the type that `on` returns is the type of its answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final, get_args, get_type_hints

from memstory.contract.target import Request, Target
from memstory.contract.values import Hit, Item, Json, Query, Receipt, Ref, Scope, ToolCall, ToolSchema, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """One conversational turn."""

    op: ClassVar[str] = "say"
    text: str

    def on(self, target: Target, scope: Scope) -> Awaitable[Turn]:
        return target.say(self.text, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Items to remember, in order."""

    op: ClassVar[str] = "add"
    items: Sequence[Item]

    def on(self, target: Target, scope: Scope) -> Awaitable[Receipt]:
        return target.add(self.items, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """Exactly one memory."""

    op: ClassVar[str] = "get"
    ref: Ref

    def on(self, target: Target, scope: Scope) -> Awaitable[Hit | None]:
        return target.get(self.ref, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Memories, best first."""

    op: ClassVar[str] = "search"
    query: Query

    def on(self, target: Target, scope: Scope) -> Awaitable[Sequence[Hit]]:
        return target.search(self.query, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """All memories, or those of some kinds."""

    op: ClassVar[str] = "list"
    kinds: Sequence[str] = ()
    limit: int | None = None

    def on(self, target: Target, scope: Scope) -> Awaitable[Sequence[Hit]]:
        return target.list(scope, self.kinds, self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A new text for one memory."""

    op: ClassVar[str] = "update"
    ref: Ref
    item: Item

    def on(self, target: Target, scope: Scope) -> Awaitable[Receipt]:
        return target.update(self.ref, self.item, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """One memory to forget; everything in scope if `ref` names nothing."""

    op: ClassVar[str] = "delete"
    ref: Ref

    def on(self, target: Target, scope: Scope) -> Awaitable[bool]:
        return target.delete(self.ref, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAbout:
    """A new text for what is remembered about some things."""

    op: ClassVar[str] = "update_about"
    about: Sequence[str]
    item: Item

    def on(self, target: Target, scope: Scope) -> Awaitable[Receipt]:
        return target.update_about(self.about, self.item, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAbout:
    """All to forget that is remembered about some things."""

    op: ClassVar[str] = "delete_about"
    about: Sequence[str]
    durable: bool = False

    def on(self, target: Target, scope: Scope) -> Awaitable[int]:
        return target.delete_about(self.about, scope, durable=self.durable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A rating of one memory."""

    op: ClassVar[str] = "feedback"
    ref: Ref
    value: float

    def on(self, target: Target, scope: Scope) -> Awaitable[bool]:
        return target.feedback(self.ref, self.value, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The text that the memory would put into a prompt."""

    op: ClassVar[str] = "context"
    query: Query

    def on(self, target: Target, scope: Scope) -> Awaitable[str]:
        return target.context(self.query, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceTools:
    """The tools that a language model is shown."""

    op: ClassVar[str] = "tools"

    def on(self, target: Target, scope: Scope) -> Awaitable[Sequence[ToolSchema]]:
        return target.tools()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """One call of a tool."""

    op: ClassVar[str] = "tool"
    name: str
    args: Mapping[str, Json] = field(default_factory=dict)
    caller: str | None = None

    def on(self, target: Target, scope: Scope) -> Awaitable[ToolCall]:
        return target.tool(self.name, self.args, scope, self.caller)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    """The end of the scope's session."""

    op: ClassVar[str] = "end_session"
    reason: str

    def on(self, target: Target, scope: Scope) -> Awaitable[None]:
        return target.end_session(scope, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """A maintenance job."""

    op: ClassVar[str] = "run"
    job: str
    args: Mapping[str, Json] = field(default_factory=dict)

    def on(self, target: Target, scope: Scope) -> Awaitable[Json]:
        return target.run(self.job, self.args, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect:
    """A look inside."""

    op: ClassVar[str] = "inspect"
    what: str
    args: Mapping[str, Json] = field(default_factory=dict)

    def on(self, target: Target, scope: Scope) -> Awaitable[Json]:
        return target.inspect(self.what, self.args, scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A part that behaves as `mode` from now on."""

    op: ClassVar[str] = "fault"
    part: str
    mode: str

    def on(self, target: Target, scope: Scope) -> Awaitable[None]:
        return target.fault(self.part, self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultsLanded:
    """How often each part was used while it failed."""

    op: ClassVar[str] = "faults_landed"

    def on(self, target: Target, scope: Scope) -> Awaitable[Mapping[str, int]]:
        return target.faults_landed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """A wait for background work."""

    op: ClassVar[str] = "settle"

    def on(self, target: Target, scope: Scope) -> Awaitable[None]:
        return target.settle()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMoved:
    """The news that the story's clock was moved."""

    op: ClassVar[str] = "time_moved"

    def on(self, target: Target, scope: Scope) -> Awaitable[None]:
        return target.time_moved()


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What answers: embedder, model, versions."""

    op: ClassVar[str] = "about"

    def on(self, target: Target, scope: Scope) -> Awaitable[Mapping[str, str]]:
        return target.about()


# Every class of this module with an `op`: one that is missing here could not cross.
REQUESTS: Final[Mapping[str, type[Request[Any]]]] = {
    kind.op: kind for kind in [*globals().values()] if isinstance(getattr(kind, "op", None), str)
}
"""By the name of the operation, which is what crosses to another process."""


@cache
def answer_of(kind: type[Request[Any]]) -> Any:
    """Return the type of the answer to requests of this kind."""
    (answer,) = get_args(get_type_hints(kind.on)["return"])
    return answer
