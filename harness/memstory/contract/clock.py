"""The story's clock, whose time only moves when the story says so; and a stopwatch for real time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count
from threading import Lock
from time import perf_counter
from typing import Protocol

STORY_START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
"""When a case without `at:` begins."""


class Clock(Protocol):
    """The time, as a target sees it."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...

    async def sleep_until(self, moment: datetime) -> None:
        """Return when the clock reaches `moment`."""
        ...


class StoryClock:
    """A clock that stops between `advance_to` calls."""

    def __init__(self, start: datetime = STORY_START) -> None:
        self._now = start
        self._order = count()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep_until(self, moment: datetime) -> None:
        if moment <= self._now:
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (moment, next(self._order), woken))
        await woken

    async def advance_to(self, moment: datetime, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        """Move to `moment`, waking sleepers in time order, each at its own time; `settle` is awaited after each.

        >>> clock = StoryClock()
        >>> asyncio.run(clock.advance_to(datetime(2026, 1, 2, tzinfo=UTC)))
        >>> clock.now().day
        2
        """
        while self._sleepers and self._sleepers[0][0] <= moment:
            due, _, woken = heapq.heappop(self._sleepers)
            self._now = max(self._now, due)
            if woken.done():
                continue
            woken.set_result(None)
            # A woken task runs before the next is due, and may go to sleep again within this advance.
            for _ in range(8):
                await asyncio.sleep(0)
            if settle is not None:
                await settle()
        self._now = moment


class Stopwatch:
    """The seconds for which something ran, in any thread; overlapping runs count once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seconds, self._since, self._running = 0.0, 0.0, 0

    @property
    def seconds(self) -> float:
        """Return the seconds so far."""
        with self._lock:
            return self._seconds + (perf_counter() - self._since if self._running else 0.0)

    def running(self) -> Stopwatch:
        """Count the time inside of `with stopwatch.running():`."""
        return self

    def __enter__(self) -> None:
        with self._lock:
            self._since = self._since if self._running else perf_counter()
            self._running += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self._seconds += perf_counter() - self._since
