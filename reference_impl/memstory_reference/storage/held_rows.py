"""What a store holds in memory of the owners that were searched last, each at a version of the owner's rows.

Vectors of ten thousand records are compared in a millisecond here, in Postgres in ten; so are the rows of the tokens
that were asked for. Each write draws a new version: what another process has written is read again, and a process's own
writes are followed. Several threads may use it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.vector_matrix import HeldRows, VectorMatrix

T = TypeVar("T")

KEPT_LISTS = 1_024
"""Tokens of an owner whose rows stay in memory."""

ROWS_OF_A_VECTOR = 200
"""Numbers of rows that take the room of one vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a row is now, nowhere if `vector` is None, and the tokens that find it no more, or only now.

    `part` is what the owner's rows are searched by: a layer, a table. None for `gone` if nobody knows the tokens: the
    row was damaged.
    """

    part: str
    id: str
    row: int = 0
    moment: int = 0
    vector: NDArray[np.float32] | None = None
    gone: AbstractSet[str] | None = frozenset()
    fresh: AbstractSet[str] = frozenset()


@dataclass(slots=True)
class _Held:
    version: object
    matrices: dict[str, VectorMatrix] = field(default_factory=dict)
    lists: OrderedDict[tuple[str, str], NDArray[np.int64]] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return sum(map(len, self.matrices.values())) + sum(map(len, self.lists.values())) // ROWS_OF_A_VECTOR


class HeldOwners:
    """The owners that were searched last, with the parts of their rows and the tokens that were asked for."""

    def __init__(self) -> None:
        self._held = HeldRows[str, _Held](len)
        self._lock = Lock()

    def search(
        self,
        owner: str,
        part: str,
        version: object,
        *,
        read: Callable[[], VectorMatrix],
        by: Callable[[VectorMatrix], T],
    ) -> T:
        """Return what `by` makes of the vectors of a version, which `read` reads if they are not held."""
        with self._lock:
            matrix = self._of(owner, version).matrices.get(part)
            if matrix is not None:
                return by(matrix)
        matrix = read()
        with self._lock:
            self._keep(owner, version, lambda held: held.matrices.__setitem__(part, matrix))
            return by(matrix)

    def lists(
        self,
        owner: str,
        part: str,
        version: object,
        tokens: Sequence[str],
        *,
        read: Callable[[Sequence[str]], Mapping[str, NDArray[np.int64]]],
    ) -> list[NDArray[np.int64]]:
        """Return the numbers of the rows of each token at a version; `read` reads those that are not held."""
        with self._lock:
            known = self._of(owner, version).lists
            found = {token: known[part, token] for token in tokens if (part, token) in known}
            for token in found:
                known.move_to_end((part, token))
        missing = [token for token in tokens if token not in found]
        if not missing:
            return [found[token] for token in tokens]
        found |= read(missing)

        def note(held: _Held) -> None:
            for token in missing:
                held.lists[part, token] = found[token]
            while len(held.lists) > KEPT_LISTS:
                held.lists.popitem(last=False)

        with self._lock:
            self._keep(owner, version, note)
        return [found[token] for token in tokens]

    def has(self, owner: str, version: object) -> bool:
        """Return whether anything of this version is held."""
        with self._lock:
            held = self._held.get(owner)
            return held is not None and held.version == version

    def follow(self, owner: str, before: object, version: object, changes: Iterable[Change]) -> None:
        """Go along with a write of this process that made one version of another."""
        with self._lock:
            held = self._held.drop(owner)
            if held is not None and held.version == before:
                for change in changes:
                    _apply(change, held)
                held.version = version
                self._held.keep(owner, held)

    def drop(self, owner: str) -> None:
        """Hold nothing of an owner."""
        with self._lock:
            self._held.drop(owner)

    def _of(self, owner: str, version: object) -> _Held:
        held = self._held.get(owner)
        return held if held is not None and held.version == version else self._held.keep(owner, _Held(version))

    def _keep(self, owner: str, version: object, note: Callable[[_Held], None]) -> None:
        """Note what was read, unless there is another version by now."""
        held = self._held.get(owner)
        if held is not None and held.version == version:
            note(held)
            self._held.keep(owner, held)


def _apply(change: Change, held: _Held) -> None:
    matrix = held.matrices.get(change.part)
    if matrix is not None and change.vector is not None:
        matrix.put(change.id, change.vector, change.moment)
    elif matrix is not None:
        matrix.discard(change.id)
    if change.gone is None:
        held.lists.clear()
        return
    for tokens, is_fresh in ((change.gone, False), (change.fresh, True)):
        for token in tokens:
            numbers = held.lists.get((change.part, token))
            if numbers is not None:
                held.lists[change.part, token] = _changed(numbers, change.row, is_in=is_fresh)


def _changed(numbers: NDArray[np.int64], row: int, *, is_in: bool) -> NDArray[np.int64]:
    """Return numbers, which are in order, with one more or one less.

    >>> _changed(np.array([2, 5]), 3, is_in=True).tolist(), _changed(np.array([2, 5]), 5, is_in=False).tolist()
    ([2, 3, 5], [2])
    """
    place = int(np.searchsorted(numbers, row))
    was_in = place < len(numbers) and numbers[place] == row
    if was_in == is_in:
        return numbers
    return np.insert(numbers, place, row) if is_in else np.delete(numbers, place)


def best_by_tokens(
    numbers: NDArray[np.int64], held: NDArray[np.int64], limit: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that hold the most tokens, of equals the later written; `numbers` are in order.

    >>> [found.tolist() for found in best_by_tokens(np.array([3, 5, 8]), np.array([1, 2, 1]), 2)]
    [[5, 8], [2, 1]]
    """
    if limit is None or len(numbers) <= limit:
        return numbers, held
    # Of sixteen bits each: numpy sorts those without comparing them.
    fewest_last = -np.minimum(held[::-1], np.iinfo(np.int16).max).astype(np.int16)
    best = len(held) - 1 - np.argsort(fewest_last, kind="stable")[:limit]
    return numbers[best], held[best]
