"""What the memory systems need of the world outside; adapters implement it, `composition` joins the two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from memstory_reference.errors import UnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BY_RULES = "rules (deterministic stand-in)"
"""What answers where a system goes by rules, without a chat model."""

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Tree: TypeAlias = Any
"""JSON that is taken apart by somebody who knows its shape, from a schema or as its author."""
Primitive: TypeAlias = str | int | float | bool
Vectors: TypeAlias = "NDArray[np.float32]"
"""(n, d) float32, each row of length 1."""

NewId: TypeAlias = Callable[[], str]


class Clock(Protocol):
    """Time, as the system may know it."""

    def now(self) -> datetime:
        """Return the current moment, aware, in UTC."""
        ...

    async def sleep_until(self, moment: datetime) -> None:
        """Return when `moment` has come."""
        ...


class Purpose(StrEnum):
    """Why a text is embedded: some models want a prefix for each."""

    DOCUMENT = "document"
    QUERY = "query"


class EmbedderUnavailableError(UnavailableError):
    """The embedding model cannot answer now; the message says what to do."""


class Embedder(Protocol):
    """Texts to vectors. `model` identifies weights and prefixes, so that unlike vectors never meet in one store."""

    model: str
    dimension: int | None
    """None until known: a server tells its dimension with the first embedding."""

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return one unit vector a text; callers pass raw text, the model's profile adds its prefix."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row of a vector index. `vector` may be left out where rows are only read."""

    id: str
    text: str
    metadata: Mapping[str, Primitive | None] = field(default_factory=dict)
    vector: Sequence[float] | NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A row found by vector; `similarity` is the cosine, in [-1, 1]."""

    record: Record
    similarity: float


class VectorIndex(Protocol):
    """One owner's rows. `where` is an exact match on metadata, all keys together; never an operator object."""

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows; a row of the same id is replaced whole, its old metadata too."""
        ...

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Return the rows that exist, in the order of `ids`."""
        ...

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        """Return the k nearest rows, nearest first, ties by id."""
        ...

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        """Return rows by id order."""
        ...

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        """Delete rows; return the ids that existed."""
        ...

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        """Count rows."""
        ...


class VectorStore(Protocol):
    """A durable place with one index for each collection and owner."""

    async def index(self, collection: str, owner: str) -> VectorIndex:
        """Open (or make) the index of `owner`; another model or dimension than it was made with is refused."""
        ...

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that have an index."""
        ...

    async def close(self) -> None:
        """Release the place, so that another process may own it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a language model sees it; `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A call that a model asks for."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation. `role` is system, user, assistant or tool; `tool` names the tool that answered."""

    role: str
    content: str
    tool_requests: Sequence[ToolRequest] = ()
    tool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said: text, tool requests, or both; the tokens where its server counts them."""

    content: str
    tool_requests: Sequence[ToolRequest] = ()
    thinking: str | None = None
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class ChatModelUnavailableError(UnavailableError):
    """The chat model cannot answer; the message says what to type."""


REPLY = "chat"
"""The purpose of a call whose answer the user hears; no other is shown while it comes in."""


class ChatModel(Protocol):
    """A language model that may call tools. `name` says 'stand-in' if no model is behind it."""

    name: str

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        purpose: str = REPLY,
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        """Return the model's next message; `purpose` says which part of a system asks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPorts:
    """What a system with an agent runs on; the store is open, and the system closes it."""

    clock: Clock
    embedder: Embedder
    store: VectorStore
    chat: ChatModel
    new_id: NewId


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A message on the bus. `request_id` ties a result to its request; `owner` says whose memory it concerns."""

    subject: str
    payload: Mapping[str, Json]
    publisher: str
    owner: str
    request_id: str | None = None


Handler: TypeAlias = Callable[[Envelope], Awaitable[None]]


class Subscription(Protocol):
    """A live subscription."""

    async def unsubscribe(self) -> None:
        """Stop delivery; what is being handled is finished."""
        ...


class NoRespondersError(Exception):
    """A request on a subject without a subscriber."""


class Bus(Protocol):
    """Publish and subscribe with the subjects of NATS: tokens split by dots, `*` for one, `>` for the rest."""

    async def publish(self, envelope: Envelope) -> None:
        """Deliver to every matching subscriber, each in a separate task; return at once."""
        ...

    async def subscribe(self, pattern: str, handler: Handler, *, name: str, queue: str | None = None) -> Subscription:
        """Call `handler` for every matching envelope from now on; of the subscriptions of one `queue` one is called."""
        ...

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Publish and return the one envelope on `reply_subject` that carries the same `request_id`."""
        ...

    async def settle(self) -> None:
        """Return when no delivery is being handled."""
        ...
