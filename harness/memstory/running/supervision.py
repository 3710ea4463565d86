"""A run over several processes: the folder that each has, what a child reports there, and what it leaves behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SUPERVISOR: Final = "MEMSTORY_SUPERVISOR"
"""The variable with the folder of the process that waits for this one."""

ENDED: Final = "ended"
REPORT: Final = "report"
_TOLD: Final = "told.jsonl"

PREFIX: Final = "memstory-run-"
LOCKS: Final = "memstory-*.lock"
"""What recordings of chat models were locked with; none is made any more."""

_YOUNG_SECONDS = 60.0
"""A folder is made a moment before it is locked."""

_PATIENCE_SECONDS = 0.5
_SHOWN = 80


class OwnFolder:
    """A new folder of this process below `within`, or where the system has temporary files; it goes with `remove`."""

    def __init__(self, within: str | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
        # The system lets go of the lock when the process ends, however it ends.
        self._descriptor = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):  # A target may have closed it.
            os.close(self._descriptor)


def clear_dead_folders() -> None:
    """Remove the temporary folders and locks of runs that were killed."""
    around = Path(tempfile.gettempdir())
    for path in (*around.glob(f"{PREFIX}*"), *around.glob(LOCKS)):
        with contextlib.suppress(OSError), _hold_unused(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def _hold_unused(path: Path) -> Iterator[None]:
    """Hold what nobody holds; OSError if it is somebody else's, in use or young."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.getuid() or time.time() - found.st_mtime < _YOUNG_SECONDS:
            raise BlockingIOError
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def tell_supervisor(word: str, value: str = "") -> None:
    """Add a line to what this process has told; where nobody waits for it, nothing happens."""
    folder = os.environ.get(SUPERVISOR)
    if folder:
        with contextlib.suppress(OSError), (Path(folder) / _TOLD).open("a", encoding="utf-8") as file:
            file.write(json.dumps([os.getpid(), word, value]) + "\n")


def messages_of(pid: int, folder: Path) -> dict[str, str]:
    """Return what the process `pid` has told to the one that has `folder`."""
    told: dict[str, str] = {}
    path = folder / _TOLD
    for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else ():
        # A target may have written there, or changed what we write with: a line that is not ours tells nothing.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            teller, word, value = json.loads(line)
            told |= {str(word): str(value)} if teller == pid else {}
    return told


def end_marked(mark: str) -> list[str]:
    """Kill every process that was started with the variable `mark`, NAME=VALUE; return which those were.

    It finds what a target has started in any session. What is about to end gets a moment. Without /proc, none is found.
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
