"""What a memory backend looks like to the harness: values, operations, capabilities.

An adapter subclasses `Target` and overrides the operations that its backend has; a `TargetFactory` holds what is dear
to start. Whatever is not overridden raises `NotSupported`, and the case that needed it is reported as `unsupported`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from memstory.errors import NotSupported

if TYPE_CHECKING:
    from pathlib import Path

    from memstory.clock import Clock

Json: TypeAlias = Any
"""None, bool, int, float, str, or lists and string-keyed mappings of these."""

Capability: TypeAlias = str
"""`search`, `search.min_score`, `job.compress`, `option.toolset`, `scope.user` …: see `memstory.language.needs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory an operation touches; `session=None` means all sessions of the user."""

    user: str
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to remember."""

    text: str
    key: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One remembered thing, by the id that the backend gave or by the key that the caller chose."""

    id: str | None = None
    key: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A ranked retrieval; whatever is None or empty is left to the backend's own default."""

    text: str
    kinds: Sequence[str] = ()
    top_k: int | None = None
    min_score: float | None = None
    token_budget: int | None = None
    where: Mapping[str, Json] = field(default_factory=dict)
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One retrieved memory; `score` is higher for better, None where the backend gives none."""

    id: str | None
    text: str
    score: float | None = None
    kind: str | None = None
    key: str | None = None
    created_at: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    explain: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptItem:
    """What became of one item (or of one piece that the backend made of it).

    `outcome` is one of stored, updated, bumped, superseded, held, dropped, discarded, skipped.
    """

    id: str | None
    text: str
    outcome: str = "stored"
    reason: str | None = None
    kind: str | None = None
    key: str | None = None
    importance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of an `add` or `update`."""

    items: Sequence[ReceiptItem] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as it was announced; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that happened: either `result` or `error` is set."""

    name: str
    args: Mapping[str, Json]
    result: Json = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An answer of an agent, with the tool calls that led to it, in order."""

    answer: str
    tool_calls: Sequence[ToolCall] = ()
    thinking: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """All that a case decides about a target: plain data, so that it crosses a process boundary unchanged.

    `workspace` is a folder of this case's own; ids and owners derive from `seed`; `vectors` maps a text to the vector
    that stands for it; `model_rules` script the language model; `faults` names parts that are to fail.
    """

    workspace: str
    owner: str
    seed: int = 0
    options: Mapping[str, Json] = field(default_factory=dict)
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    model_rules: Sequence[Mapping[str, Json]] = ()
    faults: Mapping[str, str] = field(default_factory=dict)


class Target:
    """One open memory. Override what the backend can do; never fall back, swallow an error or answer from a copy.

    A refusal on purpose is `Refused`; anything else that is raised counts as the target breaking.
    """

    async def open(self, env: Environment, clock: Clock) -> None:
        """Open the memory of `env`; opening the same environment again finds what was durable."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release everything; what was acknowledged stays durable."""
        raise NotImplementedError

    async def about(self) -> Mapping[str, str]:
        """What answered: `embedder`, `chat`, versions. A deterministic chat model says 'stand-in' in its value."""
        return {}

    async def settle(self) -> None:
        """Return when all background work is done."""

    async def time_moved(self) -> None:
        """The story's clock was moved; return when what was due has happened."""

    async def fault(self, part: str, mode: str) -> None:
        """Make `part` (embedder, model, store) behave as `mode` (down, slow, garbage, ok) from now on."""
        raise NotSupported(f"fault.{part}")

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        """Remember `items`, in order."""
        raise NotSupported("add")

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        """Return exactly the one memory that `ref` names, or None."""
        raise NotSupported("get")

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        """Return memories, best first."""
        raise NotSupported("search")

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        """Enumerate memories."""
        raise NotSupported("list")

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        """Replace what `ref` names; an unknown ref is `Refused`."""
        raise NotSupported("update")

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        """Forget what `ref` names (everything in scope if it names nothing); False when it was unknown."""
        raise NotSupported("delete")

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        """Rate what `ref` names; False when it was unknown."""
        raise NotSupported("feedback")

    async def context(self, query: Query, scope: Scope) -> str:
        """Return the text that this memory would put into a prompt."""
        raise NotSupported("context")

    async def say(self, text: str, scope: Scope) -> Turn:
        """Take one conversational turn."""
        raise NotSupported("chat")

    async def tools(self) -> Sequence[ToolSchema]:
        """Return the tools that are announced to a language model."""
        raise NotSupported("tool.schema")

    async def tool(self, name: str, args: Mapping[str, Json], scope: Scope, caller: str | None = None) -> ToolCall:
        """Call a tool as any agent may; a tool's own error is in the result, not raised."""
        raise NotSupported("tool")

    async def end_session(self, scope: Scope, reason: str) -> None:
        """End `scope.session`."""
        raise NotSupported("session")

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        """Run a maintenance job and return what it reports."""
        raise NotSupported(f"job.{job}")

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        """Look inside; `what` is `embedder`, `model`, `bus`, `log`, `status` or another word of the target."""
        raise NotSupported(f"inspect.{what}")


class TargetFactory:
    """Makes targets of one backend, and holds what is dear to start; one instance per worker process.

    `spec` (`package.module:Class`) lets another process make the same factory. Importing the module of a factory must
    not import its vendor: do that in `start` or later. `preload` names modules that are safe to import once and fork:
    their import starts no thread, opens nothing and draws no random state. With them a target in a process of its own
    opens in a tenth of a second; with none it starts a Python, and imports all anew.
    """

    name: ClassVar[str]
    spec: ClassVar[str | None] = None
    preload: ClassVar[Sequence[str]] = ()

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        """Return what a target with these options can do."""
        raise NotImplementedError

    async def start(self, folder: Path) -> None:
        """Start what all targets of this worker share; `folder` is the worker's own."""

    def target(self) -> Target:
        """Return a target that is not open yet."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop what `start` started."""
