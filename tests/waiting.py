"""Waiting for what has no event of its own; `tests/conftest.py` makes this known as `memstory_tests_waiting`."""

import asyncio
import inspect
import time

SECONDS = 30
"""Longer than anything takes on a loaded machine."""
STARTS_WITHIN = 120
"""Longer than a loaded machine takes to start pytest and to run a few stories."""
_PAUSE = 0.01


async def eventually(is_so, seconds=SECONDS):
    """Return what `is_so` returns, itself or when awaited, as soon as that is true; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            found = is_so()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(_PAUSE)


def wait_until(is_so, seconds=SECONDS):
    """Return what `is_so` returns as soon as that is true; TimeoutError after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := is_so()):
        if time.monotonic() > end:
            raise TimeoutError(f"not so within {seconds} seconds")
        time.sleep(_PAUSE)
    return found
