"""One thread at a time for a blocking store, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Lane:
    """Runs blocking calls one after the other."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns."""
        async with self._turn:
            return await asyncio.to_thread(call, *args, **kwargs)
