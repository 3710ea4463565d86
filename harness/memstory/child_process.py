"""How a child process ends: asked without reaping it, so that its number cannot come to name somebody else's group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether `process` has ended; it stays a zombie until somebody waits for it."""
    return end_of(process.pid) is not None


def how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Return ` with exit code 3` or ` by signal 9 (Killed)`; nothing if it runs."""
    return end_of(process.pid) or ""


async def wait_for_end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Return when `process` has ended or the time is over."""
    await wait_until(lambda: has_ended(process), seconds)


async def wait_until(ended: Callable[[], bool], seconds: float) -> None:
    """Return when `ended` says so or the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not ended():  # noqa: ASYNC110  (a process sets no event)
                await asyncio.sleep(0.005)


def end_of(pid: int) -> str | None:
    """Return how a child of this process ended, as `how_it_ended` does; None while it runs."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if end is None:
        return None
    if end.si_code == os.CLD_EXITED:
        return f" with exit code {end.si_status}"
    return f" by signal {end.si_status} ({signal.strsignal(end.si_status)})"
