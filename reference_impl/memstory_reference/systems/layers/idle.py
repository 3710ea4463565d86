"""Ends sessions that have fallen silent, by the injected clock (C-15, CF-14)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from memstory_reference.errors import UnavailableError
from memstory_reference.ports import Clock

LOG = logging.getLogger(__name__)

End = Callable[[str, str], Awaitable[None]]


class IdleWatch:
    """A sleeper for each session that was spoken in; `end` decides itself whether the session is idle."""

    def __init__(self, *, clock: Clock, idle: timedelta, end: End) -> None:
        self._clock = clock
        self._idle = idle
        self._end = end
        self._last: dict[tuple[str, str], datetime] = {}
        self._sleepers: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._ending: set[tuple[str, str]] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    def touched(self, owner: str, session: str, last_at: datetime) -> None:
        """Note that a session was spoken in."""
        key = (owner, session)
        self._last[key] = last_at
        if key not in self._sleepers:
            task = asyncio.create_task(self._sleep(key))
            self._sleepers[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))

    def ended(self, owner: str, session: str) -> None:
        """Watch a session no more."""
        key = (owner, session)
        self._last.pop(key, None)
        sleeper = self._sleepers.get(key)
        if sleeper is not None and key not in self._ending:
            self._sleepers.pop(key).cancel()

    async def settle(self) -> None:
        """Return when no session is being ended."""
        await self._quiet.wait()

    async def stop(self) -> None:
        """Watch nothing any more; what is being ended is finished."""
        await self.settle()
        sleepers = list(self._sleepers.values())
        for sleeper in sleepers:
            sleeper.cancel()
        await asyncio.gather(*sleepers, return_exceptions=True)
        self._last.clear()

    async def _sleep(self, key: tuple[str, str]) -> None:
        while key in self._last:
            due = self._last[key] + self._idle
            if self._clock.now() < due:
                await self._clock.sleep_until(due)
                continue
            self._ending.add(key)
            self._quiet.clear()
            try:
                await self._end(*key)
            except UnavailableError as error:
                # It stays active in the store, and is ended when that is opened again.
                LOG.warning("a silent session could not be ended: %s", type(error).__name__)
            finally:
                self._ending.discard(key)
                if not self._ending:
                    self._quiet.set()
            if self._last.get(key, due) + self._idle <= due:
                self._last.pop(key, None)

    def _forget(self, key: tuple[str, str], done: asyncio.Task[None]) -> None:
        if self._sleepers.get(key) is done:
            del self._sleepers[key]
