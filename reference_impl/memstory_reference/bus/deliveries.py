"""Handlers at work: each delivery is a task, and what a handler raises ends nothing but that delivery."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from memstory.contract.errors import MemstoryError
from memstory_reference.ports import Envelope, Handler

_log = logging.getLogger(__name__)


class Deliveries:
    """The deliveries of one bus. What the system raises on purpose is counted in `refusals`, all else in `failures`."""

    def __init__(self) -> None:
        self.refusals = 0
        self.failures = 0
        self._tasks: set[asyncio.Task[Exception | None]] = set()

    def __len__(self) -> int:
        """Return how many deliveries are under way."""
        return len(self._tasks)

    def start(self, name: str, handler: Handler, envelope: Envelope) -> asyncio.Task[Exception | None]:
        """Hand `envelope` to the handler of the subscription `name`, in a task; tasks begin in the order of calls.

        The task returns what the handler raised.
        """
        task = asyncio.create_task(self._handle(name, handler, envelope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self) -> None:
        """Return when no delivery is under way; called by a handler, it does not wait for that handler."""
        while self._tasks - {asyncio.current_task()}:
            await wait_for_all(self._tasks)

    def refuse(self, name: str, subject: str, error: MemstoryError) -> None:
        """Count and log a message that is not taken; the log does not hold its content."""
        self.refusals += 1
        _log.warning("%s refused a message on %s: %s", name, subject, error)

    async def _handle(self, name: str, handler: Handler, envelope: Envelope) -> Exception | None:
        try:
            await handler(envelope)
        except MemstoryError as error:
            self.refuse(name, envelope.subject, error)
            return error
        except Exception as error:  # noqa: BLE001  (the rim of every handler: one bad message must not end a subscription)
            self.failures += 1
            _log.exception("%s failed on %s", name, envelope.subject)
            return error
        return None


async def wait_for_all(tasks: Collection[asyncio.Task[Exception | None]]) -> None:
    """Return when all of `tasks` are done, except for the one that asks."""
    others = set(tasks) - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)
