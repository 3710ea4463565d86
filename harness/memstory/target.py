"""What a memory backend looks like to the harness: operations, capabilities, and the values they pass.

An adapter subclasses `Target` and overrides the operations that its backend has; a `TargetFactory` holds what is
expensive to start. Whatever is not overridden raises `NotSupported`, and the case that needed it is `unsupported`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeVar

from memstory.errors import NotSupported, TargetError
from memstory.values import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    ModelUse,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    ToolCall,
    ToolSchema,
    Tree,
    Turn,
)

if TYPE_CHECKING:
    from pathlib import Path

    from memstory.clock import Clock, Stopwatch

__all__ = [
    "Capability",
    "Connection",
    "Environment",
    "Hit",
    "Item",
    "Json",
    "ModelUse",
    "Query",
    "Receipt",
    "ReceiptItem",
    "Ref",
    "Request",
    "Scope",
    "Target",
    "TargetFactory",
    "ToolCall",
    "ToolSchema",
    "Tree",
    "Turn",
]

Answer_co = TypeVar("Answer_co", covariant=True)
Answer = TypeVar("Answer")

NOBODY: Final = Scope(user="")
"""The scope of requests that touch nobody's memory."""


class Request(Protocol[Answer_co]):
    """One operation with its arguments, as data: see `memstory.requests`."""

    op: ClassVar[str]

    def on(self, target: Target, scope: Scope) -> Awaitable[Answer_co]:
        """Call the operation of `target`."""
        ...


class Connection(Protocol):
    """An open memory as the harness talks to it, in this process or in another."""

    async def open(self, env: Environment, clock: Clock) -> None: ...

    async def close(self) -> None: ...

    async def perform(self, request: Request[Answer], scope: Scope = NOBODY) -> Answer: ...

    @property
    def embedding_seconds(self) -> float | None: ...

    @property
    def model_use(self) -> ModelUse | None: ...


class Target:
    """One open memory. Override what the backend can do; never fall back, swallow an error or answer from a copy.

    A refusal on purpose is `Refused`; anything else that is raised counts as the target breaking. `embedding` runs
    while the target waits for its embedder, so that reports can tell that time from the memory's own.
    """

    embedding: Stopwatch | None = None

    @property
    def embedding_seconds(self) -> float | None:
        """Seconds that the embedder has taken up to now; None if this target does not count them."""
        return None if self.embedding is None else self.embedding.seconds

    @property
    def model_use(self) -> ModelUse | None:
        """What its language model was asked up to now; None if it has none, or does not count."""
        return None

    async def open(self, env: Environment, clock: Clock) -> None:
        """Open the memory of `env`; opening the same environment again finds what was durable."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release everything; what was acknowledged stays durable."""
        raise NotImplementedError

    async def perform(self, request: Request[Answer], scope: Scope = NOBODY) -> Answer:
        """Do what `request` says; an adapter overrides the operations below instead."""
        answer = request.on(self, scope)
        if not hasattr(answer, "__await__"):
            raise TargetError(f"'{request.op}' of the target is not a coroutine: define it with 'async def'")
        return await answer

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

    async def faults_landed(self) -> Mapping[str, int]:
        """Return how often each part was used while it failed: a fault that nothing met shows nothing."""
        raise NotSupported("fault", "the target makes parts fail, but cannot say whether that happened")

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

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        """Replace what is remembered about any of these things; where there is nothing, `Refused`."""
        raise NotSupported("update.about")

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        """Forget what is remembered about any of these things; return how many memories that were."""
        raise NotSupported("delete.about")

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
    """Makes targets of one backend, and holds what is expensive to start; one instance per worker process.

    `spec` (`package.module:Class`) lets another process make the same factory. Importing the module of a factory must
    not import its vendor: do that in `start` or later. `preload` names modules that are safe to import once and fork:
    their import starts no thread, opens nothing and draws no random state. With them a target in a child process opens
    in a tenth of a second; without, the child starts a Python and imports everything again. `shares_server` says that
    other cases write to the same memory: then the users of a story get names that begin with the case's own.
    """

    name: ClassVar[str]
    spec: ClassVar[str | None] = None
    preload: ClassVar[Sequence[str]] = ()
    shares_server: bool = False

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        """Return what a target with these options can do."""
        raise NotImplementedError

    def abilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        """Return `capabilities`, with what follows from where the memory is."""
        return self.capabilities(options) | (frozenset() if self.shares(options) else {"scope.names"})

    def shares(self, options: Mapping[str, Tree]) -> bool:
        """Return `shares_server`; a factory whose options decide overrides this."""
        return self.shares_server

    async def start(self, folder: Path) -> None:
        """Start what all targets of this worker share; `folder` is the worker's own."""

    def target(self) -> Target:
        """Return a target that is not open yet."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop what `start` started."""
