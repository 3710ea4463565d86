"""What a memory takes from this machine: the time, and ids by chance. Stories have a clock and ids of their own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

LONGEST_SLEEP_SECONDS = 60.0
"""Slept at once: a machine that was suspended, or whose clock was set, is late by this much at most."""


class SystemClock:
    """A `Clock` that tells the real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep_until(self, moment: datetime) -> None:
        while (left := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110  (time is not an event)
            await asyncio.sleep(min(left, LONGEST_SLEEP_SECONDS))


def random_id() -> str:
    """Return 32 hexadecimal digits."""
    return uuid4().hex
