"""A backup of a store is a copy of its folder, taken while nobody has it open (M-17, MF-15)."""

from __future__ import annotations

import shutil
from pathlib import Path

from memstory.contract.errors import SetupError
from memstory_reference.adapters.folder_lock import LOCK_NAME, FolderLock
from memstory_reference.errors import InputError


def copy_closed(folder: Path, to: Path) -> None:
    """Copy the whole store in `folder` to the new folder `to`.

    Raises:
        InputError: there is no such store, or `to` is there already.
        StoreConflictError: the store is open; its index files on disk are not all of it.
        SetupError: `to` cannot be written.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    if to.exists():
        raise InputError(f"{to} is there already; name a folder that is not")
    lock = FolderLock(folder)
    lock.acquire()
    try:
        shutil.copytree(folder, to, ignore=shutil.ignore_patterns(LOCK_NAME))
    except OSError as problem:
        raise SetupError(f"{to} cannot hold a copy: {problem}") from problem
    finally:
        lock.release()
