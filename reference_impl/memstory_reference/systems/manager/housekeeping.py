"""Cleaning up what is expired: once at the start, then every hour of the injected clock (M-19, MF-14)."""

from __future__ import annotations

import logging
from collections import deque
from datetime import timedelta

from memstory.contract.clock import Clock
from memstory_reference.storage.recurring import Recurring
from memstory_reference.systems.manager.manager import MemoryManager

LOG = logging.getLogger(__name__)
KEPT_EVENTS = 100


class Housekeeping:
    """Runs `cleanup_expired` in the background; `events` are the runs that removed something."""

    def __init__(self, manager: MemoryManager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        self._recurring = Recurring("memory_cleanup", self.clean_up, clock)
        self.stop, self.settle = self._recurring.stop, self._recurring.settle
        self.runs = 0
        self.events: deque[dict[str, str | int]] = deque(maxlen=KEPT_EVENTS)

    async def start(self) -> None:
        """Clean up now, and from now on every interval."""
        await self.clean_up()
        await self._recurring.start(timedelta(seconds=self._manager.config.cleanup_interval_seconds))

    async def clean_up(self) -> int:
        """Clean up once and tell of it, if anything was removed."""
        deleted = await self._manager.cleanup_expired()
        self.runs += 1
        if deleted:
            LOG.info("memory_cleanup deleted=%d", deleted)
            self.events.append({"event": "memory_cleanup", "deleted": deleted, "at": self._clock.now().isoformat()})
        return deleted
