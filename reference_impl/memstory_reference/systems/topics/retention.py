"""Deleting engrams that are older than the retention: at the start, then every hour of the injected clock."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from memstory_reference.errors import MemorySystemError
from memstory_reference.ports import Clock
from memstory_reference.systems.topics.memory_service import MemoryService

EVERY = timedelta(hours=1)

_log = logging.getLogger(__name__)


class Retention:
    """Purges every owner's engrams in the background; does nothing where the settings name no retention."""

    def __init__(self, service: MemoryService, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.purged = 0

    async def start(self) -> None:
        """Purge now, and from now on every hour."""
        if self._service.config.retention_days is None:
            return
        await self._purge()
        self._task = asyncio.create_task(self._keep_on())
        # One step of the loop, in which the task goes to sleep: a clock that is moved now must wake it.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Purge no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def settle(self) -> None:
        """Return when nothing is being purged."""
        await self._idle.wait()

    async def _keep_on(self) -> None:
        while True:
            # From now: hours that a sleeping machine has missed are not made up.
            await self._clock.sleep_until(self._clock.now() + EVERY)
            await self._purge()

    async def _purge(self) -> None:
        self._idle.clear()
        try:
            self.purged += await self._service.purge_all()
        except MemorySystemError as error:
            _log.warning("engrams beyond the retention could not be deleted: %s", error)
        finally:
            self._idle.set()
