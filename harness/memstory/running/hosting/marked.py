"""Processes that a target has started, recognised by an environment variable in any session."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PATIENCE_SECONDS = 0.5
_SHOWN = 80


def end_marked(mark: str) -> list[str]:
    """Kill every process that was started with the variable `mark`, NAME=VALUE; return which those were.

    One that is about to end gets a moment. Where there is no /proc, none is found.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    while (left := _marked_processes(mark.encode())) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"process {pid} ({words[:_SHOWN]})" for pid, words in left.items()]


def _marked_processes(mark: bytes) -> dict[int, str]:
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        # Gone meanwhile, or somebody else's.
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            # Python's own, which ends when the process does that it works for.
            is_ours = int(place.name) == os.getpid() or "multiprocessing.resource_tracker" in words
            if not is_ours and mark in (place / "environ").read_bytes().split(b"\0"):
                found[int(place.name)] = words
    return found
