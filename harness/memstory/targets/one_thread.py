"""A thread of its own for a driver that blocks: calls go in order, and the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class OneThread:
    """Runs what it is given, one after the other; nothing that a driver made in this thread leaves it."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[..., Result], *args: Any) -> Result:
        """Return what `call` returns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *args)

    def close(self) -> None:
        """Let the thread end when its last call is done."""
        self._thread.shutdown(wait=False)
