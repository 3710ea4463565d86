"""Ends sessions that have fallen silent, by the injected clock (C-15, CF-14)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer

LOG = logging.getLogger(__name__)

End = Callable[[str, str], Awaitable[None]]
Active = Callable[[], Awaitable[Sequence[SessionMemoryBuffer]]]

LOOKS_AN_IDLE_TIME = 2
"""One would do for every session to be seen before it is due; one of two may fail."""


class IdleWatch:
    """A sleeper for each session that was spoken in; `end` decides itself whether the session is idle.

    `active` gives the sessions of the store: those that other processes have opened are among them.
    """

    def __init__(self, *, clock: Clock, idle: timedelta, end: End, active: Active) -> None:
        self._clock = clock
        self._idle = idle
        self._end = end
        self._active = active
        self._last: dict[tuple[str, str], datetime] = {}
        self._sleepers: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._ending: set[tuple[str, str]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._at_work = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def look(self) -> None:
        """Watch every active session of the store; those that have been silent for too long end soon after."""
        with self._busy():
            for buffer in await self._active():
                # This process may have heard a word of it while the store was read.
                heard = self._last.get((buffer.owner, buffer.session), buffer.last_at)
                self.touch(buffer.owner, buffer.session, max(heard, buffer.last_at))

    def keep_looking(self) -> None:
        """Look again and again, until `stop`: a store that is shared has sessions of processes that are gone."""
        self._looking = asyncio.create_task(self._look_round())
        self._looking.add_done_callback(_tell)

    def touch(self, owner: str, session: str, last_at: datetime) -> None:
        """Note that a session was spoken in."""
        key = (owner, session)
        self._last[key] = last_at
        if key not in self._sleepers:
            task = asyncio.create_task(self._sleep(key))
            self._sleepers[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))

    def drop(self, owner: str, session: str) -> None:
        """Watch a session no more."""
        key = (owner, session)
        self._last.pop(key, None)
        sleeper = self._sleepers.get(key)
        if sleeper is not None and key not in self._ending:
            self._sleepers.pop(key).cancel()

    async def settle(self) -> None:
        """Return when no session is being ended or looked for."""
        # What a look has found begins to end when its sleeper has its first turn.
        await asyncio.sleep(0)
        while not self._quiet.is_set():
            await self._quiet.wait()

    async def stop(self) -> None:
        """Watch nothing any more; what is being ended is finished."""
        await self.settle()
        sleepers = [*self._sleepers.values(), *([self._looking] if self._looking else [])]
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
            try:
                with self._busy():
                    await self._end(*key)
            except UnavailableError as error:
                # It stays active in the store, and is ended when that is opened again or looked through.
                LOG.warning("a silent session could not be ended: %s", type(error).__name__)
            finally:
                self._ending.discard(key)
            if self._last.get(key, due) + self._idle <= due:
                self._last.pop(key, None)

    async def _look_round(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.now() + self._idle / LOOKS_AN_IDLE_TIME)
            try:
                await self.look()
            except UnavailableError as error:
                LOG.warning("the sessions of other processes could not be seen: %s", type(error).__name__)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._at_work += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._quiet.set()

    def _forget(self, key: tuple[str, str], done: asyncio.Task[None]) -> None:
        if self._sleepers.get(key) is done:
            del self._sleepers[key]


def _tell(done: asyncio.Task[None]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        LOG.error("nobody looks for the sessions of other processes any more", exc_info=error)
