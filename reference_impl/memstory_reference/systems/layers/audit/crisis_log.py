"""Where crisis records go: a protocol, and the log that lives in memory only (C-18, CF-4)."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from memstory_reference.systems.layers.audit.crisis_events import CrisisLogRecord


class CrisisLogBackend(Protocol):
    """Append, look, and purge what is older than its retention; nothing else, and no search."""

    async def aappend(self, record: CrisisLogRecord) -> None:
        """Add a record."""
        ...

    async def alist(self, owner: str) -> list[CrisisLogRecord]:
        """Return an owner's records, oldest first."""
        ...

    async def apurge(self, before: datetime) -> int:
        """Delete everybody's records from before this moment; return how many there were."""
        ...

    async def aclose(self) -> None:
        """Release the log."""
        ...


class InMemoryCrisisLog:
    """A log that ends with the process."""

    def __init__(self) -> None:
        self._records: list[CrisisLogRecord] = []

    async def aappend(self, record: CrisisLogRecord) -> None:
        self._records.append(record)

    async def alist(self, owner: str) -> list[CrisisLogRecord]:
        return sorted((one for one in self._records if one.owner == owner), key=lambda one: (one.at, one.id))

    async def apurge(self, before: datetime) -> int:
        kept = [one for one in self._records if one.at >= before]
        gone, self._records = len(self._records) - len(kept), kept
        return gone

    async def aclose(self) -> None:
        self._records.clear()
