"""Vectors of one owner in a file that is mapped into memory: row i of the file is row i of a float32 matrix.

The file is a copy of what a store holds, never the truth: a row that has no length 1 is not written yet, and is read
from the store again. So a change wipes the row first, commits to the store, and then writes the row; a process that
is killed in between leaves a row of zeros.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.vector_matrix import are_unit

_FIRST_ROWS = 64
_BLOCK = 1_000


class MappedMatrix:
    """Blocking; rows are grown by doubling, and a row that was never written is zero.

    Without a file it is in memory alone.
    """

    def __init__(self, file: Path | None, dimension: int) -> None:
        self._file = file
        self.dimension = dimension
        self._mapped: NDArray[np.float32] | None = None
        self._count = self._on_disk()

    @property
    def rows(self) -> NDArray[np.float32]:
        """All rows that there is room for; after `close` they are mapped again."""
        if self._mapped is None:
            if self._on_disk() < self._count:  # to map it would make rows of zeros
                raise UnavailableError(f"{self._file} is gone or was cut off; open the store again to mend it")
            return self._map(self._count)
        return self._mapped

    def reserve(self, rows: int) -> None:
        """Make room for so many rows; UnavailableError where the disk has none, and nothing is changed then."""
        if rows > len(self.rows):
            self._grow(max(_FIRST_ROWS, 2 * len(self.rows), rows))

    def put(self, places: Sequence[int] | NDArray[np.intp], vectors: NDArray[np.float32]) -> None:
        """Write unit vectors at places that were reserved."""
        self.rows[places] = vectors

    def wipe(self, places: Sequence[int]) -> None:
        """Overwrite rows with zeros, on the disk too."""
        inside = [place for place in places if place < len(self.rows)]
        if inside:
            self.rows[inside] = 0
            if isinstance(self.rows, np.memmap):
                self.rows.flush()

    def unwritten(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of the places whose row is not of length 1."""
        within = places[places < len(self.rows)]
        # Block by block: all at once would be a copy of the whole file.
        blocks = np.split(within, range(_BLOCK, len(within), _BLOCK))
        is_written = np.concatenate([are_unit(rows) for rows in map(self.rows.__getitem__, blocks)])
        missing: NDArray[np.intp] = np.concatenate([places[places >= len(self.rows)], within[~is_written]])
        return missing

    def close(self) -> None:
        """Let go of the file until it is asked for again; the kernel writes what is left."""
        self._mapped = None

    @property
    def _row_bytes(self) -> int:
        return 4 * self.dimension

    def _grow(self, rows: int) -> None:
        if self._file is None:
            held = self.rows
            self._map(rows)[: len(held)] = held
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._file.open("ab") as opened:
                # Reserved now: to write to a mapped page that the disk has no room for would kill the process.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(opened.fileno(), 0, rows * self._row_bytes)
                else:  # on macOS, zeros take the room
                    opened.write(bytes(rows * self._row_bytes - opened.tell()))
        except OSError as problem:
            wanted = "has no room" if problem.errno in (errno.ENOSPC, errno.EDQUOT) else "cannot be written"
            raise UnavailableError(
                f"{self._file} {wanted}: {problem.strerror}. Give it room on its disk, or use another folder"
            ) from problem
        self._map(rows)

    def _on_disk(self) -> int:
        return self._file.stat().st_size // self._row_bytes if self._file and self._file.is_file() else 0

    def _map(self, rows: int) -> NDArray[np.float32]:
        self._count = rows
        shape = (rows, self.dimension)
        if rows and self._file is not None:
            self._mapped = np.memmap(self._file, np.float32, "r+", shape=shape)
        else:
            self._mapped = np.zeros(shape, np.float32)
        return self._mapped
