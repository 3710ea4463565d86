"""The turns of many owners: one store, on a folder of files for each owner, or on one schema that processes share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import Pool, empty_pool
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn, OwnerTurns, latest_of
from memstory_reference.systems.turns.turn import Turn

T = TypeVar("T")


class TurnsStore(ABC):
    """Turns of many owners; each operation is of one. A store that does not answer raises `UnavailableError`.

    Within a session, turns that have a speaker stand in the order in which they were added. Where the owners are, a
    subclass says.
    """

    @abstractmethod
    async def read(self, owner: str, ask: Callable[[OwnerTurns], T], if_unknown: T) -> T:
        """Return what `ask` returns; a question about a stranger makes no owner."""

    @abstractmethod
    async def write(self, owner: str, work: Callable[[OwnerTurns], T]) -> T:
        """Return what `work` returns, for an owner who is made if need be."""

    @abstractmethod
    async def forget_owner(self, owner: str) -> int:
        """Delete all of an owner; return how many turns there were."""

    @abstractmethod
    async def owners(self) -> list[str]:
        """Return who has turns, sorted."""

    @abstractmethod
    async def close(self) -> None:
        """Release the store; closing twice is harmless."""

    async def put(self, owner: str, written: Sequence[IndexedTurn]) -> None:
        """Write turns, all or none; one whose id is there replaces it, and keeps its place in its session.

        A key goes over to the last turn that brings it.
        """
        if written:
            await self.write(owner, lambda turns: turns.put(latest_of(written)))

    async def get(self, owner: str, ids: Sequence[str]) -> list[Turn]:
        """Return the turns that exist, in the order of `ids`."""
        return await self.read(owner, lambda turns: turns.get(ids), [])

    async def by_numbers(self, owner: str, numbers: Sequence[int]) -> dict[int, Turn]:
        """Return the turns that exist, by the numbers that a pool gives them."""
        return await self.read(owner, lambda turns: turns.by_numbers(numbers), {})

    async def by_keys(self, owner: str, keys: Sequence[str]) -> dict[str, Turn]:
        """Return the turns that exist, by their keys."""
        return await self.read(owner, lambda turns: turns.by_keys(keys), {})

    async def list_turns(self, owner: str, conditions: Conditions, limit: int | None = None) -> list[Turn]:
        """Return turns in the order in which they were added, or the last `limit` of them."""
        return await self.read(owner, lambda turns: turns.list_turns(conditions, limit), [])

    async def pool(
        self, owner: str, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions
    ) -> Pool:
        """Return what is ranked: the `size` nearest, the `size` best by words, and the turns beside each of them.

        All of them meet the conditions.
        """
        return await self.read(owner, lambda turns: turns.pool(vector, stems, size, conditions), empty_pool())

    async def speakers(self, owner: str) -> Collection[str]:
        """Return who speaks in this owner's turns."""
        return await self.read(owner, lambda turns: turns.speakers(), frozenset())

    async def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete turns with every trace; return the ids that existed."""
        gone: Sequence[str] = await self.read(owner, lambda turns: turns.delete("id", ids), [])
        return [one for one in dict.fromkeys(ids) if one in gone]

    async def forget_session(self, owner: str, session: str) -> int:
        """Delete the turns of a session; return how many there were."""
        return len(await self.read(owner, lambda turns: turns.delete("session", [session]), []))

    async def count(self, owner: str) -> int:
        """Count an owner's turns."""
        return await self.read(owner, lambda turns: turns.count(), 0)

    async def unreadable(self, owner: str) -> int:
        """Read an owner's turns; return how many are damaged, which everything else leaves out."""
        return await self.read(owner, lambda turns: turns.unreadable(), 0)
