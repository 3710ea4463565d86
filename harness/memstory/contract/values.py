"""What passes between the harness and a memory: plain values, frozen, that become JSON and come back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:
    Json = Any  # The codec passes it on as it is.
"""None, bool, int, float, str, or lists and mappings (with text keys) of these: what targets receive and return."""

Tree: TypeAlias = Any
"""JSON whose shape the reader knows, from a schema or as its author."""

Capability: TypeAlias = str
"""`search`, `search.min_score`, `job.compress`, `option.toolset`, `scope.user` …: see `language.capabilities`."""


Made = TypeVar("Made")

HELD: Final = "memories"
"""The fact of a preloaded target's `about` that says how many memories its user has there, in digits."""

MADE_BY: Final = "made by"
"""The fact of a target's `about` that names who brings its memory; a comparison ranks memstory's own below others."""

STAND_IN: Final = "stand-in"
"""Part of the name of every chat model that follows fixed rules."""


def quick_init(cls: type[Made]) -> type[Made]:
    """Construct a frozen keyword-only dataclass with slots in two thirds of the time, for documents and hits.

    Its own `__init__` sets each field by name, around the `__setattr__` that refuses; this one has the slots at hand.
    """
    own: Any = cls.__init__
    known: dict[str, Any] = {}
    lines = []
    for one in fields(cls):  # type: ignore[arg-type]  # a dataclass, which no type says
        name, value = one.name, one.name
        if one.default_factory is not MISSING:
            known |= {f"make_{name}": one.default_factory, "left_out": own.__kwdefaults__[name]}
            value = f"make_{name}() if {name} is left_out else {name}"
        known[f"set_{name}"] = getattr(cls, name).__set__
        lines.append(f" set_{name}(self, {value})\n")
    head = f"def __init__(self, *, {', '.join(one.name for one in fields(cls))}):\n"  # type: ignore[arg-type]
    exec(head + "".join(lines), known)  # noqa: S102  (as `dataclass` itself does, from the names of fields)
    quick = known["__init__"]
    quick.__kwdefaults__, quick.__annotations__ = own.__kwdefaults__, own.__annotations__
    quick.__qualname__, quick.__module__ = own.__qualname__, cls.__module__
    cls.__init__ = quick  # type: ignore[method-assign]
    return cls


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """Use of a language model: calls, failed calls, tokens (None if its server counts none), seconds."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, reply: Tree, seconds: float) -> ModelUse:
        """Return one call, answered with `reply`; None for one that failed."""
        given, made = (None, None) if reply is None else (reply.prompt_tokens, reply.answer_tokens)
        return cls(calls=1, failed=int(reply is None), prompt_tokens=given, answer_tokens=made, seconds=seconds)

    def __add__(self, other: ModelUse) -> ModelUse:
        return ModelUse(
            calls=self.calls + other.calls,
            failed=self.failed + other.failed,
            prompt_tokens=_sum(self.prompt_tokens, other.prompt_tokens),
            answer_tokens=_sum(self.answer_tokens, other.answer_tokens),
            seconds=self.seconds + other.seconds,
        )

    def __str__(self) -> str:
        counts = (self.prompt_tokens, self.answer_tokens)
        tokens = " + ".join("?" if one is None else str(one) for one in counts)
        counted = "" if counts == (None, None) else f", tokens {tokens}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"model: calls {self.calls}{failed}{counted}, {self.seconds:.2f} s"

    def since(self, before: ModelUse | None) -> ModelUse:
        """Return the use since `before`; None means since the beginning."""
        old = before or ModelUse()
        return ModelUse(
            calls=self.calls - old.calls,
            failed=self.failed - old.failed,
            prompt_tokens=None if self.prompt_tokens is None else self.prompt_tokens - (old.prompt_tokens or 0),
            answer_tokens=None if self.answer_tokens is None else self.answer_tokens - (old.answer_tokens or 0),
            seconds=self.seconds - old.seconds,
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory an operation touches; `session=None` means all sessions of the user."""

    user: str
    session: str | None = None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to remember.

    It expires `ttl` seconds after it was added. `source` says where it comes from and `role` who said it: user,
    assistant, tool or web.
    """

    text: str
    key: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    ttl: float | None = None
    source: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A reference to one memory, by the id that the backend gave or by the key that the caller chose.

    A `durable` deletion is permanent: the memory stays away even when its source is added again.
    """

    id: str | None = None
    key: str | None = None
    kind: str | None = None
    durable: bool = False


OPERATORS: Final[Mapping[str, Capability]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le"), "search.where.order"),
    **{name: f"search.where.{name}" for name in ("ne", "in", "exists")},
}
"""What a condition may say instead of a value, and the capability that takes it."""


def operators_of(condition: Json) -> Mapping[str, Json]:
    """Return what a condition says with operators, all of which must hold; empty for a value that must be equal.

    >>> operators_of({"ge": 3, "lt": 5}), operators_of({"city": "Oslo"}), operators_of(3)
    ({'ge': 3, 'lt': 5}, {}, {})
    """
    return condition if isinstance(condition, Mapping) and condition and OPERATORS.keys() >= condition.keys() else {}


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A ranked retrieval; the backend's default applies to everything that is None or empty.

    `where` has for each name of the metadata the value, or a mapping of `OPERATORS`; of the conditions in `where_any`,
    each of the form of `where`, one must hold too.

    `as_of` is a moment, ISO 8601 in UTC: the search sees what was known then and has not been forgotten since.
    """

    text: str
    kinds: Sequence[str] = ()
    top_k: int | None = None
    min_score: float | None = None
    token_budget: int | None = None
    where: Mapping[str, Json] = field(default_factory=dict)
    where_any: Sequence[Mapping[str, Json]] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    as_of: str | None = None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One retrieved memory; a higher `score` is better, None if the backend returns none."""

    id: str | None
    text: str
    score: float | None = None
    kind: str | None = None
    key: str | None = None
    created_at: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    explain: Mapping[str, Json] | None = None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptItem:
    """What happened to one item (or to one piece that the backend made of it).

    `outcome` is one of stored, updated, bumped, superseded, held, dropped, discarded, skipped.
    """

    id: str | None
    text: str
    outcome: str = "stored"
    reason: str | None = None
    kind: str | None = None
    key: str | None = None
    importance: float | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the text is somewhere now: what was skipped is there already, and what is held may come."""
        return self.outcome not in ("dropped", "discarded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What happened in an `add` or `update`."""

    items: Sequence[ReceiptItem] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """An announced tool; `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that happened: either `result` or `error` is set."""

    name: str
    args: Mapping[str, Json]
    result: Json = None
    error: str | None = None

    @property
    def text(self) -> str:
        """What the caller reads: the error or the result, which is JSON unless it is a text."""
        if self.error is not None:
            return self.error
        return self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An agent's answer, with the tool calls that led to it, in order.

    `notes` are what whoever speaks should know beside it, such as that the turn is not stored.
    """

    answer: str
    tool_calls: Sequence[ToolCall] = ()
    thinking: str | None = None
    context: str | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Everything that a case decides about a target: plain data, so that it crosses a process boundary unchanged.

    `workspace` is a folder for this case alone; ids and owners derive from `seed`; `vectors` maps texts to vectors;
    `model_rules` script the language model; `faults` names components that must fail. `other_embedder` asks for a
    different embedding model from the one that the memory was made with, `older` for the release before. `preloaded`
    asks for the memory that the options name, with what is in it of `owner`: nothing may be made, emptied or removed.
    """

    workspace: str
    owner: str
    seed: int = 0
    options: Mapping[str, Json] = field(default_factory=dict)
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    model_rules: Sequence[Mapping[str, Json]] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    other_embedder: bool = False
    older: bool = False
    preloaded: bool = False
