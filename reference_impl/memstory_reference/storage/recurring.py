"""Work that is done again at every interval of the injected clock, such as deleting what has expired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from memstory.contract.clock import Clock

LOG = logging.getLogger(__name__)


class Recurring:
    """Calls `work` in the background, first after one interval; what it raises is logged by `name` and ends nothing."""

    def __init__(self, name: str, work: Callable[[], Awaitable[object]], clock: Clock) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self, interval: timedelta) -> None:
        """Begin to wait."""
        self._task = asyncio.create_task(self._keep_on(interval))
        # One step of the loop, in which the task goes to sleep: a clock that is moved now must wake it.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Do it no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def settle(self) -> None:
        """Return when none of it is under way."""
        await self._idle.wait()

    async def _keep_on(self, interval: timedelta) -> None:
        due = self._clock.now() + interval
        while True:
            await self._clock.sleep_until(due)
            # Intervals that were slept through, as by a machine that was shut, are not made up for.
            due += interval * (1 + (self._clock.now() - due) // interval)
            self._idle.clear()
            try:
                await self._work()
            except Exception:
                # One failure must not end the rhythm; what broke is in the log.
                LOG.exception("%s failed", self._name)
            finally:
                self._idle.set()
