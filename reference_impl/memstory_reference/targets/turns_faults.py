"""A turns store that the story can make fail."""

from __future__ import annotations

from typing import Any, cast

from memstory_reference.adapters.faults import FaultSwitch, FaultyPort
from memstory_reference.systems.turns.ranking.pool import Pool, empty_pool
from memstory_reference.systems.turns.stores.store import TurnsStore


def faulty_turns_store(store: TurnsStore, switch: FaultSwitch) -> TurnsStore:
    """Return `store` behind `switch`; in mode `garbage` it finds nothing."""
    return cast("TurnsStore", _FaultyTurnsStore(store, switch))


class _FaultyTurnsStore(FaultyPort):
    # A store that is down is still closed: its folder must be free for the next to open it.
    free = frozenset({"close"})

    async def pool(self, *args: Any) -> Pool:
        await self._switch.pass_or_fail()
        found: Pool = await self._inner.pool(*args)
        return empty_pool() if self._switch.garbles() else found
