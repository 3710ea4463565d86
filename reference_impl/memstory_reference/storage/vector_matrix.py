"""Vectors as a matrix, by id or in a file: the exact nearest rows in a millisecond at ten thousand."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import StoreConflictError

DIGITS = 6
"""Beyond them float32 only gives the noise of the order in which products were added; equal scores must tie."""

SLACK = 1e-5
"""More than float32 can be wrong by in the product of two unit vectors of a few thousand numbers."""

_FIRST_CAPACITY = 16
_FIRST_ROWS = 64
_BLOCK = 1_000
_LENGTH_SLACK = 1e-3


class VectorMatrix:
    """Unit vectors of one dimension, each with the moment of its making in microseconds, if it matters."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._rows = np.zeros((0, 0), np.float32)
        self._moments = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def put(self, identifier: str, vector: NDArray[np.float32], moment: int = 0) -> None:
        """Add or replace a row; of equal ones the row with the higher `moment` comes first."""
        check_dimension(self._rows.shape[1] if self._ids else None, vector)
        if identifier not in self._places:
            self._grow(len(vector))
            self._places[identifier] = len(self._ids)
            self._ids.append(identifier)
        place = self._places[identifier]
        self._rows[place] = vector
        self._moments[place] = moment

    def discard(self, identifier: str) -> None:
        """Take a row out, if it is there; the last one moves to its place."""
        place = self._places.pop(identifier, None)
        if place is None:
            return
        last = self._ids.pop()
        if last != identifier:
            self._ids[place] = last
            self._places[last] = place
            self._rows[place] = self._rows[len(self._ids)]
            self._moments[place] = self._moments[len(self._ids)]

    def moment(self, identifier: str) -> int:
        """Return the moment of a row that is there."""
        return int(self._moments[self._places[identifier]])

    def places(self, ids: Iterable[str]) -> NDArray[np.intp]:
        """Return where rows are, until the next change."""
        return np.array([self._places[one] for one in ids], np.intp)

    def nearest(
        self,
        vector: NDArray[np.float32],
        k: int,
        *,
        among: NDArray[np.intp] | None = None,
        since: int | None = None,
    ) -> list[tuple[str, float]]:
        """Return the k nearest of all rows, or of those at the places `among`: best first, ties by newer, then id.

        Each id comes with its cosine; `since` leaves out rows of an earlier moment. StoreConflictError for a vector of
        another dimension.
        """
        check_dimension(self._rows.shape[1] if self._ids else None, vector)
        count = len(self._ids)
        places = np.arange(count) if among is None else among
        if since is not None:
            places = places[self._moments[places] >= since]
        if k <= 0 or not len(places):
            return []
        if k < len(places):
            # All rows at once, for to copy some would take longer.
            rough = products(self._rows[:count], vector)[places]
            places = places[rough >= np.partition(rough, -k)[-k] - SLACK]
        scores = cosines(self._rows[places], vector)
        ranked = sorted(
            (-float(score), -int(self._moments[place]), self._ids[place])
            for place, score in zip(places, scores, strict=True)
        )
        return [(identifier, -negative) for negative, _, identifier in ranked[:k]]

    def _grow(self, dimension: int) -> None:
        capacity, count = len(self._rows), len(self._ids)
        if count < capacity:
            return
        rows = np.zeros((max(_FIRST_CAPACITY, 2 * capacity), dimension), np.float32)
        moments = np.zeros(len(rows), np.int64)
        if count:
            rows[:count], moments[:count] = self._rows[:count], self._moments[:count]
        self._rows, self._moments = rows, moments


def normalized_or_none(vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Return a vector at length 1; None for one that has no direction, whose cosine would be no number (CF-5)."""
    if vector is None:
        return None
    row = np.asarray(vector, np.float32).reshape(-1)
    length = _length(row)
    return row / np.float32(length) if np.isfinite(length) and length > 0 else None


def unit_vector(stored: object) -> NDArray[np.float32] | None:
    """Return a vector that was stored as bytes; None for what is none, or has another length than the 1 of all."""
    if not isinstance(stored, bytes) or len(stored) % 4:
        return None
    vector: NDArray[np.float32] = np.frombuffer(stored, np.float32)
    return vector if abs(_length(vector) - 1) < _LENGTH_SLACK else None  # false of NaN too


def are_unit(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Say of each row whether its length is 1, as of all that is stored; false of NaN too."""
    unit: NDArray[np.bool_] = np.abs(np.einsum("ij,ij->i", vectors, vectors) - 1) < _LENGTH_SLACK
    return unit


def _length(vector: NDArray[np.float32]) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(vector))


def check_dimension(held: int | None, vector: NDArray[np.float32]) -> None:
    """Raise StoreConflictError for a vector of another length than the `held` one of a store."""
    if held not in (None, len(vector)):
        raise StoreConflictError(
            f"the store holds vectors of {held} numbers, not {len(vector)}: another model answers under the same name. "
            "Use the model that the store was made with, or another folder"
        )


def cosines(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a unit vector, at six digits.

    In float64, for the noise of float32 is wide enough to put two equal rows on two sides of a sixth digit.
    """
    scores: NDArray[np.float64] = np.clip(products(matrix.astype(np.float64), vector.astype(np.float64)), -1.0, 1.0)
    return scores.round(DIGITS)


def products(matrix: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    """Return the product of each row with a vector, in the thread of the caller.

    The threads of a BLAS would wait for each other where the cores are busy.
    """
    found: NDArray[Any] = np.einsum("ij,j->i", matrix, vector)
    return found


class MappedMatrix:
    """Vectors of one owner in a file that is mapped into memory: row i of the file is row i. Blocking.

    The file is a copy of what a store holds, never the truth: a row that has no length 1 is not written yet, and is
    read from the store again. So a change wipes the row first, commits to the store, and then writes the row; a process
    that is killed in between leaves a row of zeros. Rows are grown by doubling. Without a file it is in memory alone.
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
