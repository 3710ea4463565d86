"""What the memory systems need of the world outside; adapters implement it, `composition` joins the two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memstory.contract.errors import UnavailableError
from memstory.contract.values import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAND_IN = "deterministic stand-in"
"""What the name of every chat model says that goes by rules."""
BY_RULES = f"rules ({STAND_IN})"
"""What answers where a system goes by rules, without a chat model."""

Primitive: TypeAlias = str | int | float | bool
Vectors: TypeAlias = "NDArray[np.float32]"
"""(n, d) float32, each row of length 1."""

NewId: TypeAlias = Callable[[], str]


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

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to it: what was read may then have changed since."""
        ...

    def alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Hold off whoever else, in any process, wants to be alone with `owner`: to write what follows from reading."""
        ...

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
class Envelope:
    """A message on the bus. `request_id` ties a result to its request; `owner` says whose memory it concerns."""

    subject: str
    payload: Mapping[str, Json]
    publisher: str
    owner: str
    request_id: str | None = None


Handler: TypeAlias = Callable[[Envelope], Awaitable[None]]


class NoRespondersError(Exception):
    """A request on a subject without a subscriber."""
