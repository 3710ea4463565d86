"""What happens behind turns: work after each reply, and the end of silent sessions (C-15, CF-14)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime, timedelta

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory_reference.storage.recurring import Recurring
from memstory_reference.systems.layers.records import SessionMemoryBuffer

LOG = logging.getLogger(__name__)

Work = Callable[[], Awaitable[object]]


class Background:
    """Chains work by key. What fails is logged and kept for `raise_failure`; the next piece runs all the same."""

    def __init__(self) -> None:
        self._tails: dict[str, asyncio.Task[None]] = {}
        self._awaited = dict[asyncio.Task[object], str]()
        self._failure: Exception | None = None

    def schedule(self, key: str, work: Work) -> None:
        """Do `work` after what was scheduled before under this key, and return at once."""
        task = asyncio.create_task(self._after(self._tails.get(key), work))
        self._tails[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    async def finish(self, key: str, work: Coroutine[object, object, object]) -> None:
        """Do `work` now, and to its end though the caller is cancelled meanwhile."""
        task = asyncio.create_task(work)
        self._awaited[task] = key
        task.add_done_callback(self._awaited.pop)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._note)
            raise

    async def settle(self, key: str | None = None) -> None:
        """Return when nothing is under way, or nothing under this key."""
        while tasks := [
            *(task for task, name in self._awaited.items() if key in (None, name)),
            *(task for name, task in self._tails.items() if key in (None, name)),
        ]:
            await asyncio.wait(tasks)

    def raise_failure(self) -> None:
        """Raise the first unexpected error since the last call."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def _after(self, before: asyncio.Task[None] | None, work: Work) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await work()
        except Exception as error:
            # Nothing awaits this task: its error goes to the log, and to callers that ask for it.
            LOG.exception("work after a turn failed")
            self._failure = self._failure or error

    def _note(self, done: asyncio.Task[object]) -> None:
        """Keep the error of what nobody awaits any more."""
        if not done.cancelled() and isinstance(error := done.exception(), Exception):
            LOG.error("a turn could not be saved once its caller had gone", exc_info=error)
            self._failure = self._failure or error

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._tails.get(key) is done:
            del self._tails[key]


End = Callable[[str, str], object]
Active = Callable[[], Awaitable[Sequence[SessionMemoryBuffer]]]

LOOKS_AN_IDLE_TIME = 2
"""One would do for every session to be seen before it is due; one of two may fail."""


class IdleWatch:
    """A sleeper for each session that was spoken in, which calls `end` once it has been silent for the whole time.

    `end` begins the end and returns at once; it decides itself whether the session is idle. `active` gives the sessions
    of the store: those that other processes have opened are among them.
    """

    def __init__(self, *, clock: Clock, idle: timedelta, end: End, active: Active) -> None:
        self._clock = clock
        self._idle = idle
        self._end = end
        self._active = active
        self._last: dict[tuple[str, str], datetime] = {}
        self._sleepers: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._looking = Recurring("looking at the sessions of other processes", self._look_again, clock)

    async def look(self) -> None:
        """Watch every active session of the store; those that have been silent for too long end soon after."""
        for buffer in await self._active():
            # This process may have heard a word of it while the store was read.
            heard = self._last.get((buffer.owner, buffer.session), buffer.last_at)
            self.touch(buffer.owner, buffer.session, max(heard, buffer.last_at))

    async def keep_looking(self) -> None:
        """Look again and again, until `stop`: a store that is shared has sessions of processes that are gone."""
        await self._looking.start(self._idle / LOOKS_AN_IDLE_TIME)

    def touch(self, owner: str, session: str, last_at: datetime) -> None:
        """Note that a session was spoken in."""
        key = (owner, session)
        self._last[key] = last_at
        if key not in self._sleepers:
            self._sleepers[key] = asyncio.create_task(self._sleep(key))

    def drop(self, owner: str, session: str) -> None:
        """Watch a session no more."""
        key = (owner, session)
        self._last.pop(key, None)
        if key in self._sleepers:
            self._sleepers.pop(key).cancel()

    async def settle(self) -> None:
        """Return when nothing is looked for, and what was found silent has begun to end."""
        await self._looking.settle()
        # What a look has found begins to end when its sleeper has its first turn.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Watch nothing any more; what has begun to end is left to who began it."""
        await self._looking.stop()
        sleepers = [*self._sleepers.values()]
        for sleeper in sleepers:
            sleeper.cancel()
        await asyncio.gather(*sleepers, return_exceptions=True)
        self._last.clear()

    async def _sleep(self, key: tuple[str, str]) -> None:
        while (due := self._last[key] + self._idle) > self._clock.now():
            await self._clock.sleep_until(due)
        del self._last[key], self._sleepers[key]
        self._end(*key)

    async def _look_again(self) -> None:
        try:
            await self.look()
        except UnavailableError as error:
            LOG.warning("the sessions of other processes could not be seen: %s", type(error).__name__)
