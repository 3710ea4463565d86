"""What an open memory takes of the machine: bytes on disk, and resident memory and processes where it has its own."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from memstory.results.recording import Footprint

_PROC = Path("/proc")


def footprint_of(*folders: Path, process: int | None) -> Footprint:
    """Return what lies in `folders`, and what `process` and all that it has started take.

    The latter is None without a process of its own, and on systems without /proc.
    """
    disk = sum(_size(path) for folder in folders for path in folder.rglob("*"))
    if process is None or not _PROC.is_dir():
        return Footprint(disk_bytes=disk)
    family = [*_family(process)]
    return Footprint(disk_bytes=disk, resident_bytes=sum(map(_resident, family)), processes=len(family))


def _size(path: Path) -> int:
    """Return the bytes that a file really takes; a file that vanishes meanwhile takes none."""
    try:
        return path.lstat().st_blocks * 512 if path.is_file() and not path.is_symlink() else 0
    except OSError:
        return 0


def _family(process: int) -> Iterator[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children[parent].append(int(entry.name))
    waiting = [process]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += children[one]


def _parent(entry: Path) -> int | None:
    try:
        # The name, in brackets, may hold spaces and brackets.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _resident(process: int) -> int:
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
