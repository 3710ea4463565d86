"""What the turns memory needs of a store. SQLite and Postgres implement it; one conformance suite holds for both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import Pool
from memstory_reference.systems.turns.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTurn:
    """A turn with what it is found by: its unit vector and the stems of its text, in their order."""

    turn: Turn
    vector: NDArray[np.float32]
    stems: Sequence[str]


def latest_of(written: Sequence[IndexedTurn]) -> list[IndexedTurn]:
    """Return what stands when all were written one after the other: each id once, and each key."""
    latest = {one.turn.id: one for one in written}
    holder = {one.turn.key: one.turn.id for one in written}
    return [
        one
        if holder[one.turn.key] == one.turn.id or one.turn.key is None
        else replace(one, turn=replace(one.turn, key=None))
        for one in latest.values()
    ]


class TurnsStore(Protocol):
    """Turns of many owners; each operation is of one. A store that does not answer raises `UnavailableError`.

    Within a session, turns that have a speaker stand in the order in which they were added.
    """

    async def put(self, owner: str, written: Sequence[IndexedTurn]) -> None:
        """Write turns, all or none; one whose id is there replaces it, and keeps its place in its session.

        A key goes over to the last turn that brings it.
        """
        ...

    async def get(self, owner: str, ids: Sequence[str]) -> list[Turn]:
        """Return the turns that exist, in the order of `ids`."""
        ...

    async def by_numbers(self, owner: str, numbers: Sequence[int]) -> dict[int, Turn]:
        """Return the turns that exist, by the numbers that a pool gives them."""
        ...

    async def by_keys(self, owner: str, keys: Sequence[str]) -> dict[str, Turn]:
        """Return the turns that exist, by their keys."""
        ...

    async def list_turns(self, owner: str, conditions: Conditions, limit: int | None = None) -> list[Turn]:
        """Return turns in the order in which they were added, or the last `limit` of them."""
        ...

    async def pool(
        self, owner: str, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions
    ) -> Pool:
        """Return what is ranked: the `size` nearest, the `size` best by words, and the turns beside each of them.

        All of them meet the conditions.
        """
        ...

    async def speakers(self, owner: str) -> Collection[str]:
        """Return who ever spoke in this owner's turns."""
        ...

    async def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete turns with every trace; return the ids that existed."""
        ...

    async def forget_session(self, owner: str, session: str) -> int:
        """Delete the turns of a session; return how many there were."""
        ...

    async def forget_owner(self, owner: str) -> int:
        """Delete all of an owner; return how many turns there were."""
        ...

    async def owners(self) -> list[str]:
        """Return who has turns, sorted."""
        ...

    async def count(self, owner: str) -> int:
        """Count an owner's turns."""
        ...

    async def unreadable(self, owner: str) -> int:
        """Read an owner's turns; return how many are damaged, which everything else leaves out."""
        ...

    async def close(self) -> None:
        """Release the store; closing twice is harmless."""
        ...
