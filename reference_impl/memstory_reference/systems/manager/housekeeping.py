"""Cleaning up what is expired: once at the start, then every hour of the injected clock (M-19, MF-14)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import timedelta

from memstory_reference.ports import Clock
from memstory_reference.systems.manager.manager import MemoryManager

LOG = logging.getLogger(__name__)
KEPT_EVENTS = 100


class Housekeeping:
    """Runs `cleanup_expired` in the background; `events` are the runs that removed something."""

    def __init__(self, manager: MemoryManager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.runs = 0
        self.events: deque[dict[str, str | int]] = deque(maxlen=KEPT_EVENTS)

    async def start(self) -> None:
        """Clean up now, and from now on every interval."""
        await self.clean_up()
        self._task = asyncio.create_task(self._keep_house())
        # One step of the loop, in which the task goes to sleep: a clock that is moved now must wake it.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Clean up no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def settle(self) -> None:
        """Return when no cleanup is under way."""
        await self._idle.wait()

    async def clean_up(self) -> int:
        """Clean up once and tell of it, if anything was removed."""
        deleted = await self._manager.cleanup_expired()
        self.runs += 1
        if deleted:
            LOG.info("memory_cleanup deleted=%d", deleted)
            self.events.append({"event": "memory_cleanup", "deleted": deleted, "at": self._clock.now().isoformat()})
        return deleted

    async def _keep_house(self) -> None:
        interval = timedelta(seconds=self._manager.config.cleanup_interval_seconds)
        due = self._clock.now() + interval
        while True:
            await self._clock.sleep_until(due)
            # Hours that were slept through, as by a machine that was shut, are not made up for.
            due += interval * (1 + (self._clock.now() - due) // interval)
            self._idle.clear()
            try:
                await self.clean_up()
            except Exception:
                # One failed run must not end the hourly rhythm; what broke is in the log.
                LOG.exception("memory_cleanup failed")
            finally:
                self._idle.set()
