"""How a child process ends: asked without reaping it, so that its number cannot come to name somebody else's group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Final


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether `process` has ended; it stays a zombie until somebody waits for it."""
    return end_of(process.pid) is not None


def exit_phrase(process: subprocess.Popen[bytes]) -> str:
    """Return ` with exit code 3` or ` by signal 9 (Killed)`; nothing if it runs."""
    return end_of(process.pid) or ""


async def wait_for_end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Return when `process` has ended or the time is over."""
    await wait_until(lambda: has_ended(process), seconds)


async def wait_until(ended: Callable[[], bool], seconds: float | None) -> None:
    """Return when `ended` says so or the time is over; None waits for as long as it takes."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not ended():  # noqa: ASYNC110  (a process sets no event)
                await asyncio.sleep(0.005)


def kill_group(pid: int) -> None:
    """SIGKILL the group that a child leads; nothing happens where all of it has ended."""
    # A group of zombies alone is not there on Linux, and forbidden on macOS.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_of(pid: int) -> str | None:
    """Return how a child of this process ended, as `exit_phrase` does; None while it runs."""
    code = _exit_code(pid)
    if code is None:
        return None
    return f" with exit code {code}" if code >= 0 else f" by signal {-code} ({signal.strsignal(-code)})"


_REAPED: Final[dict[int, int]] = {}
"""The exit codes of children that had to be reaped to be asked: on macOS, where Python has no `waitid` before 3.13.

There, a number whose whole group has ended may come to name another, should the system use it again at once.
"""


def _exit_code(pid: int) -> int | None:
    """Return the exit code of a child, negative for a signal; None while it runs."""
    if hasattr(os, "waitid"):
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is None:
            return None
        code: int = end.si_status
        return code if end.si_code == os.CLD_EXITED else -code
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        if pid not in _REAPED:
            raise
        return _REAPED[pid]
    if not found:
        return None
    _REAPED[pid] = os.waitstatus_to_exitcode(status)
    return _REAPED[pid]
