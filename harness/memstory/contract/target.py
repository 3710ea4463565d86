"""What a memory backend looks like to the harness: operations, capabilities, and the values they pass.

An adapter subclasses `Target` and overrides the operations that its backend supports; a `TargetFactory` holds what is
expensive to start. Every other operation raises `NotSupported`, and a case that needs it is `unsupported`; where the
operation is declared, it is an `error`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, iscoroutinefunction, signature
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_type_hints,
)

from memstory.contract.errors import NotSupported, TargetError
from memstory.contract.values import (
    OPERATORS,
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
    operators_of,
)

if TYPE_CHECKING:
    from memstory.contract.clock import Clock, Stopwatch

__all__ = [
    "OLDER",
    "OPERATIONS",
    "OPERATORS",
    "Capability",
    "Connection",
    "Environment",
    "Hit",
    "Item",
    "Json",
    "Memory",
    "ModelUse",
    "Query",
    "Receipt",
    "ReceiptItem",
    "Ref",
    "Request",
    "Responder",
    "Scope",
    "Target",
    "TargetFactory",
    "ToolCall",
    "ToolSchema",
    "Tree",
    "Turn",
    "Usage",
    "operators_of",
]

Answer = TypeVar("Answer")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class Request(Generic[Answer]):
    """A call of a target's operation as data, which can cross to another process.

    `op` is the name of the method of `Target`, `args` all of its arguments by name.
    """

    op: str
    args: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        operation: Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]],
        *args: Arguments.args,
        **more: Arguments.kwargs,
    ) -> Request[Result]:
        """Return a call of `operation`, with its arguments.

        >>> Request.of(Target.inspect, "log", {}, Scope(user="ann")).args["what"]
        'log'
        """
        form = _parameters(operation)
        usual = {one.name: one.default for one in form if one.default is not one.empty}
        given = zip((one.name for one in form), args, strict=False)
        return Request(operation.__name__, {**usual, **dict(given), **more})


@cache
def _parameters(operation: Callable[..., Any]) -> Sequence[Parameter]:
    return tuple(signature(operation).parameters.values())[1:]


@cache
def hints(op: str) -> Mapping[str, Any]:
    """Return the types of the arguments of an operation by name, and that of its answer under `return`."""
    return get_type_hints(getattr(Target, op))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an open memory has used: seconds of its embedder and calls of its language model, None if not counted.

    `requests` are the last requests to its server, a line each and without secrets.
    """

    embedding_seconds: float | None = None
    model: ModelUse | None = None
    requests: Sequence[str] = ()

    def since(self, before: Usage) -> Usage:
        """Return the use since `before`, of which the requests have been taken."""
        seconds, model = self.embedding_seconds, self.model
        return Usage(
            embedding_seconds=None if seconds is None else seconds - (before.embedding_seconds or 0.0),
            model=None if model is None else model.since(before.model),
            requests=self.requests,
        )


class Responder(Protocol):
    """Whatever does what a request says: a memory here, or the way to one elsewhere."""

    async def perform(self, request: Request[Answer]) -> Answer: ...


class Connection(Responder, Protocol):
    """An open memory as the harness talks to it, in this process or in another."""

    async def open(self, env: Environment, clock: Clock) -> None: ...

    async def close(self) -> None: ...

    def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]: ...

    def usage(self) -> Usage:
        """Return what was used so far, and take the requests: the next call returns those after this one."""
        ...


class Memory:
    """The operations of one open memory: a target has them, and so has each memory that this project brings.

    Every operation that a memory lacks raises `NotSupported`. `Refused` is a refusal on purpose.
    """

    async def about(self) -> Mapping[str, str]:
        """Describe what answered: `embedder`, `chat`, versions. A deterministic chat model's value has 'stand-in'."""
        return {}

    async def perform(self, request: Request[Answer]) -> Answer:
        """Do what `request` says; an adapter overrides the operations below instead."""
        form = _parameters(getattr(Target, request.op))
        # By place, since an adapter may call a parameter by another name.
        placed = [request.args[one.name] for one in form if one.kind is not one.KEYWORD_ONLY]
        named = {one.name: request.args[one.name] for one in form if one.kind is one.KEYWORD_ONLY}
        operation = getattr(self, request.op)
        try:
            answer = operation(*placed, **named)
        except TypeError as error:
            # A coroutine function has not begun here: what does not fit are its parameters.
            if not iscoroutinefunction(operation):
                raise
            usual = ", ".join(str(one.replace(annotation=one.empty)) for one in form)
            said = f"'{request.op}' of the target has other parameters: {error}."
            raise TargetError(f"{said} Define it as 'async def {request.op}(self, {usual})'") from None
        if not hasattr(answer, "__await__"):
            raise TargetError(f"'{request.op}' of the target is not a coroutine: define it with 'async def'")
        return cast("Answer", await answer)

    async def settle(self) -> None:
        """Return when all background work is done."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        """Remember `items`, in order."""
        raise NotSupported("add")

    def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]:
        """Remember any number of items as `add` does, by a bulk path: an async generator, and the capability `load`.

        It takes of `items` what it writes at once, and yields a receipt with one line for each of them, in their order,
        when they are kept as after `add`. Where it raises, nothing is kept of what it took since the last receipt.
        """
        raise NotSupported("load")

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        """Return the memory that `ref` identifies, or None."""
        raise NotSupported("get")

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        """Return memories, best first."""
        raise NotSupported("search")

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        """List memories."""
        raise NotSupported("list")

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        """Replace the memory that `ref` identifies; raise `Refused` if it is unknown."""
        raise NotSupported("update")

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        """Forget the memory that `ref` identifies (everything in scope if `ref` is empty); False if it was unknown."""
        raise NotSupported("delete")

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        """Replace what is remembered about any of these things; raise `Refused` if there is nothing."""
        raise NotSupported("update.about")

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        """Forget what is remembered about any of these things; return the number of memories forgotten."""
        raise NotSupported("delete.about")

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        """Rate the memory that `ref` identifies; False if it was unknown."""
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
        """Call a tool, as any agent could; an error of the tool is in the result, not raised."""
        raise NotSupported("tool")

    async def end_session(self, scope: Scope, reason: str) -> None:
        """End `scope.session`."""
        raise NotSupported("session")

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        """Run a maintenance job and return what it reports."""
        raise NotSupported(f"job.{job}")

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        """Look inside; `what` is `embedder`, `model`, `bus`, `log`, `status` or another name that the target knows."""
        raise NotSupported(f"inspect.{what}")


class Target(Memory):
    """One open memory. Override what the backend can do; never fall back, swallow an error or answer from a copy.

    Raise `Refused` for a refusal on purpose; any other exception counts as the target breaking. `embedding` runs while
    the target waits for its embedder, so that reports can separate that time from the memory's.
    """

    embedding: Stopwatch | None = None

    @property
    def embedding_seconds(self) -> float | None:
        """Seconds that the embedder has taken so far; None if this target does not measure them."""
        return None if self.embedding is None else self.embedding.seconds

    @property
    def model_use(self) -> ModelUse | None:
        """Calls of its language model so far; None if it has none or does not count them."""
        return None

    def take_requests(self) -> Sequence[str]:
        """Return the last requests to a server since this was last asked, a line each and without secrets."""
        return ()

    def usage(self) -> Usage:
        """Return what was used so far, and take the requests; an adapter overrides the three above instead."""
        return Usage(
            embedding_seconds=self.embedding_seconds, model=self.model_use, requests=tuple(self.take_requests())
        )

    async def open(self, env: Environment, clock: Clock) -> None:
        """Open the memory of `env`; opening the same environment again finds what was durable."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release everything; what was acknowledged stays durable."""
        raise NotImplementedError

    async def time_moved(self) -> None:
        """Handle a move of the story's clock; return when everything that was due has happened."""

    async def fault(self, part: str, mode: str) -> None:
        """Make `part` (embedder, model, store) behave as `mode` (down, slow, garbage, ok) from now on."""
        raise NotSupported(f"fault.{part}")

    async def fault_counts(self) -> Mapping[str, int]:
        """Return how often each part was used while it failed; a fault that was never hit proves nothing."""
        raise NotSupported("fault", "the target makes parts fail, but cannot say whether that happened")


OLDER: Final = "older"
"""The option that names an older release, with which a story that upgrades begins."""


class TargetFactory:
    """Makes targets of one backend, and holds what is expensive to start; one instance per worker process.

    `spec` (`package.module:Class`) lets another process make the same factory. Importing a factory's module must not
    import its vendor library: do that in `start` or later. `preload` names modules that are safe to import once and
    fork: importing them starts no thread, opens nothing and uses no random state. With `preload` a target in a child
    process opens in a tenth of a second; without it, the child starts a new Python and imports everything again.
    `shares_server` means that other cases write to the same memory; the story's users then get names with a prefix for
    the case.
    """

    name: ClassVar[str]
    spec: ClassVar[str | None] = None
    preload: ClassVar[Sequence[str]] = ()
    shares_server: bool = False

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        """Return what a target with these options can do."""
        raise NotImplementedError

    def abilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        """Return `capabilities`, plus those that depend on whether the memory is shared, or has an older release."""
        able = self.capabilities(options)
        if self.shares(options):
            return able
        keeps = self.spec is not None and {"persistent", "restart"} <= able
        older = {f"option.{OLDER}", *(["upgrade"] if OLDER in options else [])} if keeps else set()
        return able | {"scope.names"} | older

    def older_release(self, options: Mapping[str, Tree]) -> Path | None:
        """Return the folder of an older release of the library, which its child process imports before all else."""
        return Path(str(options[OLDER])) if OLDER in options else None

    def shares(self, options: Mapping[str, Tree]) -> bool:
        """Return `shares_server`; override this if it depends on the options."""
        return self.shares_server

    def isolates(self, options: Mapping[str, Tree]) -> bool:
        """Whether every target needs a process of its own, whose working folder and HOME are its workspace."""
        return False

    def cheapest_options(self, options: Mapping[str, Tree], needs: frozenset[Capability]) -> Mapping[str, Tree]:
        """Return `options`, or others by which a story that needs only these capabilities costs less."""
        return options

    def remark(self, options: Mapping[str, Tree]) -> str:
        """Return what a run says of this target at its end, in a few sentences; usually nothing."""
        return ""

    async def start(self, folder: Path) -> None:
        """Start what all targets of this worker share; `folder` belongs to the worker."""

    def target(self) -> Target:
        """Return a target that is not open yet."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop what `start` started."""


OPERATIONS: Final = frozenset(
    name
    for name, member in {**vars(Memory), **vars(Target)}.items()
    if iscoroutinefunction(member) and name not in ("open", "close", "perform")
)
"""The names of the methods that a `Request` may call."""
