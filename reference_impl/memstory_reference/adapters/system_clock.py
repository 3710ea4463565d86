"""The time of this machine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

LONGEST_NAP_SECONDS = 60.0
"""The machine's clock may be set, or stand still while it is suspended: a sleeper looks at it again after so long."""


class SystemClock:
    """A `Clock` that goes by itself."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep_until(self, moment: datetime) -> None:
        while (seconds := (moment - self.now()).total_seconds()) > 0:
            await asyncio.sleep(min(seconds, LONGEST_NAP_SECONDS))
