"""A temporary folder for this process, and the removal of folders whose process was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PREFIX: Final = "memstory-run-"
LOCKS: Final = "memstory-*.lock"
"""What recordings of chat models were locked with; none is made any more."""

_YOUNG_SECONDS = 60.0
"""A folder is made a moment before it is locked."""


class OwnFolder:
    """A new folder below `within`, the system's for temporary files if that is None; it goes with `remove`."""

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
