"""What the layers need of a store. SQLite and Postgres implement it; one conformance suite holds for both.

Rows are in namespaces (owner, layer). Searches, `alatest` and counts of what is retrieved see active rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.vector_matrix import VectorMatrix
from memstory_reference.systems.layers.identity import microseconds
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing

ACTIVE: Sequence[Standing] = (Standing.ACTIVE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """A row that a search found: its moment of making, in microseconds; `score` is the cosine or the token recall.

    Most of what a search finds is never shown: `aget` reads those that are. It leaves a damaged row out, the search may
    name it.
    """

    id: str
    moment: int
    score: float


class MemoryStore(Protocol):
    """The three layers of many owners.

    A put replaces the row of the same owner and id; where it brings no vector and the text is unchanged, the row keeps
    the vector that it has. A store that does not answer raises `UnavailableError`, and has then written nothing.
    """

    async def aput(self, record: MemoryRecord) -> None:
        """Write one row."""
        ...

    async def aput_batch(self, records: Sequence[MemoryRecord]) -> None:
        """Write all rows or none, also if `records` itself fails while it is read, or the process dies."""
        ...

    async def aget(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the owner's rows that exist, whatever their standing, in the order of `ids`."""
        ...

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        """Return rows, newest first, ties by id."""
        ...

    async def asearch_similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        """Return the rows nearest by cosine, exactly: best first, ties by newer, then id; rows without vector are out.

        `since` leaves out what was created before it.
        """
        ...

    async def asearch_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        """Return the rows by their share of `tokens`, best first, ties by newer, then id; a row with none is out."""
        ...

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        """Return the newest row, whatever its age."""
        ...

    async def acounts(self, owner: str) -> Mapping[tuple[Layer, Standing], int]:
        """Count rows; a missing pair is 0."""
        ...

    async def awithout_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        """Return active rows that were written while there was no embedding, oldest first."""
        ...

    async def adamaged_ids(self, owner: str) -> list[str]:
        """Return the ids of rows that were changed outside memstory: no read gives them, a delete removes them."""
        ...

    async def alost(self) -> int:
        """Return how many rows, of all owners, some read lacks since the store was damaged, as far as is known."""
        ...

    async def adelete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete rows for good, with every trace in the store's indexes; return the ids that existed."""
        ...

    async def adelete_owner(self, owner: str) -> int:
        """Delete all rows of an owner, and the switch; return how many rows there were."""
        ...

    async def aset_recall(self, owner: str, *, on: bool) -> None:
        """Keep whether an owner's memory is read, until it is switched again or the owner forgotten."""
        ...

    async def arecall(self, owner: str) -> bool:
        """Say whether an owner's memory is read: yes, unless it was switched off."""
        ...

    async def asession_key(self) -> bytes:
        """Return the secret with which this store's sessions are hashed: at least 16 random bytes, made once."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold `name` against everybody who writes to the same store; not to be taken twice by one task."""
        ...

    async def aclose(self) -> None:
        """Release the store; closing twice is harmless."""
        ...


class ActiveSessions(Protocol):
    """The buffers of sessions that have not ended, in the same store as the memory, so that an end is atomic."""

    async def aload(self, owner: str, session: str, last: int | None = None) -> SessionMemoryBuffer | None:
        """Return the buffer of an active session, with all its turns or the `last` ones."""
        ...

    async def asave(self, buffer: SessionMemoryBuffer, *, rewrite: bool = False) -> None:
        """Write the buffer of a session; turns that are stored and that it does not hold stay.

        Of stored turns only `extracted` is written; with `rewrite` all turns are those of the buffer, word for word.
        """
        ...

    async def aactive(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        """Return the active sessions of an owner, or of all, without their turns, the longest silent first."""
        ...

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        """Write `records` and take the session off, both or neither; False, writing nothing, if it has ended before."""
        ...

    async def aforget_sessions(self, owner: str) -> int:
        """Drop an owner's active sessions with all that was held; return how many there were."""
        ...


class LayersStore(MemoryStore, ActiveSessions, Protocol):
    """Both in one place."""


def nearest_of(matrix: VectorMatrix, query: NDArray[np.float32], limit: int, since: datetime | None) -> list[ScoredRow]:
    """Return the rows nearest to a vector of length 1, best first, ties by newer, then id."""
    found = matrix.nearest(query, limit, since=microseconds(since) if since else None)
    return [ScoredRow(id=one, moment=matrix.moment(one), score=score) for one, score in found]


def best_by_tokens(
    numbers: NDArray[np.int64], held: NDArray[np.int64], limit: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that hold the most tokens, of equals the later written; `numbers` are in order.

    >>> [found.tolist() for found in best_by_tokens(np.array([3, 5, 8]), np.array([1, 2, 1]), 2)]
    [[5, 8], [2, 1]]
    """
    if limit is None or len(numbers) <= limit:
        return numbers, held
    # Of sixteen bits each: numpy sorts those without comparing them.
    fewest_last = -np.minimum(held[::-1], np.iinfo(np.int16).max).astype(np.int16)
    best = len(held) - 1 - np.argsort(fewest_last, kind="stable")[:limit]
    return numbers[best], held[best]
