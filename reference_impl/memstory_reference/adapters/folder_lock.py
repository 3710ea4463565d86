"""One process owns a store's folder: a second writer would make the first one's index miss rows without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from memstory.contract.errors import SetupError
from memstory_reference.errors import StoreConflictError

LOCK_NAME = ".owner.lock"


class FolderLock:
    """The sole right to a folder, held until `release`; the system lets go of it when the process dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Not thread-local: the store is opened in one thread and may be closed in another.
        self._lock = FileLock(folder / LOCK_NAME, thread_local=False)

    def acquire(self) -> None:
        """Make the folder if need be and take it; StoreConflictError if it is taken, SetupError if it is unusable."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # memories are nobody else's business
            self._lock.acquire(blocking=False)
        except Timeout as problem:
            raise StoreConflictError(
                f"{self._folder} is in use by another process, or by another store of this one: a folder belongs to "
                "one process. Close that one, or choose another folder. Several programs use one memory through 'serve "
                "http'; each of the six runs as several services on Postgres ('store: postgres', --store "
                "postgresql://…, of mcp --path)"
            ) from problem
        except OSError as problem:
            reason = problem.strerror or str(problem)
            msg = f"{self._folder} cannot hold a store: {reason}. Give a folder that this user may write to."
            raise SetupError(msg) from problem

    def release(self) -> None:
        """Let go; a second call does nothing."""
        self._lock.release()

    @contextmanager
    def opening(self) -> Iterator[Callable[[], None]]:
        """Take the folder for a store that is opened meanwhile; when that is closed, it calls what this yields."""
        self.acquire()
        try:
            yield self.release
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
