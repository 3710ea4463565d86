"""The folder of a store: one process owns it, and a backup is a copy, taken whether it is open or not (M-17, MF-15).

A second writer would make the first one's index miss rows without an error.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from filelock import FileLock, Timeout

from memstory.contract.errors import SetupError
from memstory_reference.errors import InputError, StoreConflictError

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


_SQLITE = b"SQLite format 3\0"
_BESIDE = (f"{LOCK_NAME}", "*-wal", "*-shm", "*-journal")
"""What stands beside files and is not copied: the log of a database is read with it."""


def copy_folder(folder: Path, to: Path, *, derived: Sequence[str] = (), foreign: Sequence[str] = ()) -> None:
    """Copy the store in `folder` to the new folder `to`, each SQLite file as it is between two writes.

    What `derived` names is left out: it is made again when the copy is opened. While a folder that `foreign` names is
    there, whose files only its own library can read, nobody may have the store open.

    Raises:
        InputError: there is no such store, or `to` is there already.
        StoreConflictError: the store is open, and has a foreign folder.
        SetupError: `to` cannot be written, or a file cannot be read.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    if to.exists():
        raise InputError(f"{to} is there already; name a folder that is not")
    part = to.with_name(f"{to.name}.part")
    ignored = shutil.ignore_patterns(*_BESIDE, *derived)
    is_foreign = any((folder / name).exists() for name in foreign)
    with FolderLock(folder) if is_foreign else nullcontext():
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True, mode=0o700)
            shutil.copytree(folder, part, ignore=ignored, copy_function=_copy_file, dirs_exist_ok=True)
            part.chmod(0o700)  # copytree has given it the rights of the original
            part.rename(to)
        except (OSError, sqlite3.Error) as problem:
            raise SetupError(f"{to} cannot hold a copy: {problem}") from problem
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _copy_file(file: str, to: str) -> str:
    """Copy a file; one that went meanwhile, with its owner, is left out."""
    try:
        with Path(file).open("rb") as opened:
            is_database = opened.read(len(_SQLITE)) == _SQLITE
    except FileNotFoundError:
        return to
    if not is_database:
        shutil.copyfile(file, to)
        return to
    source = f"{Path(file).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(source, uri=True)) as old, closing(sqlite3.connect(to)) as new:
        old.backup(new)
    return to
