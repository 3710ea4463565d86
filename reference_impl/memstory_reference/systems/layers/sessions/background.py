"""Work after the reply: one session's turns in their order, sessions beside each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

LOG = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class Background:
    """Chains work by key. What fails is logged and kept for `raise_failure`; the next piece runs all the same."""

    def __init__(self) -> None:
        self._tails: dict[str, asyncio.Task[None]] = {}
        self._failure: Exception | None = None

    def schedule(self, key: str, work: Work) -> None:
        """Do `work` after what was scheduled before under this key, and return at once."""
        task = asyncio.create_task(self._after(self._tails.get(key), work))
        self._tails[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    async def settle(self, key: str | None = None) -> None:
        """Return when nothing is scheduled, or nothing under this key."""
        while tasks := [task for name, task in self._tails.items() if key in (None, name)]:
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

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._tails.get(key) is done:
            del self._tails[key]
