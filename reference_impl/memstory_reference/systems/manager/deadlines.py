"""When an owner's memories may first expire, so that a cleanup reads only what can hold something to remove."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from memstory_reference.systems.manager.memories.memory import Memory, expires_at

NEVER = datetime.max.replace(tzinfo=UTC)


class Deadlines:
    """The earliest expiry of each owner whose rows were read once; it relies on hearing of every write."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._earliest: dict[str, datetime] = {}

    def is_due(self, owner: str, now: datetime) -> bool:
        """Say whether something of `owner` may be expired; an owner whose rows were never read may have anything."""
        return owner not in self._earliest or now > self._earliest[owner]

    def begin(self, owner: str) -> None:
        """Note that the rows of `owner` are being read now; what is written meanwhile is noted by `note`."""
        self._earliest[owner] = NEVER

    def forget(self, owner: str) -> None:
        """Note that nothing is known of `owner`: its rows could not be read."""
        self._earliest.pop(owner, None)

    def note(self, owner: str, memories: Iterable[Memory]) -> None:
        """Take the expiries of memories into account; does nothing for an owner whose rows were never read."""
        if owner in self._earliest:
            ends = (expires_at(memory.memory_type, memory.created_at, self._zone) for memory in memories)
            self._earliest[owner] = min([self._earliest[owner], *(end for end in ends if end is not None)])
