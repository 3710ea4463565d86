"""A backup of a store is a copy of its folder, taken whether or not a process has it open (M-17, MF-15)."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path

from memstory.contract.errors import SetupError
from memstory_reference.adapters.folder_lock import LOCK_NAME, FolderLock
from memstory_reference.errors import InputError

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
