"""How a child process ends: asked without reaping it, so that its number cannot come to name somebody else's group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether `process` has ended; it stays a zombie until somebody waits for it."""
    return _end_of(process) is not None


def how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Return ` with exit code 3` or ` by signal 9 (Killed)`; nothing if it runs."""
    end = _end_of(process)
    if end is None:
        return ""
    if end.si_code == os.CLD_EXITED:
        return f" with exit code {end.si_status}"
    return f" by signal {end.si_status} ({signal.strsignal(end.si_status)})"


async def wait_for_end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Return when `process` has ended or the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not has_ended(process):  # noqa: ASYNC110  (a process sets no event)
                await asyncio.sleep(0.005)


def _end_of(process: subprocess.Popen[bytes]) -> os.waitid_result | None:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
