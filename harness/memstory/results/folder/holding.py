"""One run at a time in a folder of reports: two would mix their cases in one spool.

The system lets go of the lock when its process ends, however it ends; workers of one run write under its lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from memstory.contract.errors import SetupError
from memstory.results.folder.whole_files import writing

LOCK_NAME: Final = ".in-use"


class Hold:
    """A folder that this process has for itself until `release`."""

    def __init__(self, folder: Path, patience_seconds: float = 0.0) -> None:
        """Take `folder`, which must exist.

        Raises:
            SetupError: another process still has it after `patience_seconds`, or its disk is full.
        """
        self._path = folder / LOCK_NAME
        self._until = monotonic() + patience_seconds
        self._descriptor: int | None = self._lock()
        try:
            with writing(self._path):
                os.truncate(self._descriptor, 0)
                os.write(self._descriptor, str(os.getpid()).encode())
        except SetupError:
            self.release()
            raise

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self._descriptor is not None:
            # While it is still locked, so that nobody's new file is taken away.
            with suppress(NotADirectoryError):  # a target put a file in the folder's place
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> None:
        """Nothing more: it is held since it was made."""

    def __exit__(self, *_: object) -> None:
        self.release()

    def _lock(self) -> int:
        while True:
            descriptor = self._open()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.read(descriptor, 20).decode("ascii", "replace") or "unknown"
                os.close(descriptor)
                if monotonic() < self._until:
                    sleep(0.02)
                    continue
                raise SetupError(
                    f"{self._path.parent} is in use: another run (process {holder}) writes its reports there. "
                    "Wait until it has ended, or name another folder with --report"
                ) from error
            if self._is_current(descriptor):
                return descriptor
            os.close(descriptor)  # its holder has just taken the file away: lock the one that others will see

    def _open(self) -> int:
        try:
            # The creator of the folder must not make us write into somebody else's file.
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise SetupError(f"{self._path} is a symbolic link, which no run leaves there: remove it") from error

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False
