"""Several processes with one file: one at a time works on it, and knows whether another has written since."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_PAUSE_SECONDS = 0.001


class Turns:
    """The turns of one process at `path`; what runs at the same time within the process shares its turn."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._inside = 0
        self._lock = -1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Keep other processes out; the system lets go of the lock when this one is killed."""
        while not self._inside and not self._take():  # noqa: ASYNC110  (another process wakes nobody here)
            await asyncio.sleep(_PAUSE_SECONDS)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                os.close(self._lock)

    def news(self) -> str | None:
        """Return the file if it is not as this process left or read it, else None."""
        now = self._state()
        if now is None or now == self._seen:
            return None
        self._seen = now
        return self._path.read_text(encoding="utf-8")

    def note(self) -> None:
        """Take the file as it is for one's own."""
        self._seen = self._state()

    def _take(self) -> bool:
        # The folder: a file for the lock would be one more that a story looks into.
        self._lock = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            return False
        return True

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
