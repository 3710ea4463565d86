"""What a store holds in memory of the owners that were asked last, each at a version of the owner's rows.

Vectors of ten thousand records are compared in a millisecond here, in Postgres in ten; so are the rows of the tokens
that were asked for. Each write draws a new version: what another process has written is read again, and a process's own
writes are followed.

A search reads the version before the rows: what is written in between is in memory under the earlier version, where
nobody looks for it any more, and a change that is followed twice is none. What is read while an owner is lent must not
wait for who writes: a writer may wait for the owner.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.vector_matrix import VectorMatrix

HELD_ROWS = 100_000
"""Rows of all owners that a store holds in memory: 150 MB of vectors at 384 numbers."""

HELD_OWNERS = 1_000
"""Owners of whom a store holds something in memory, be it that they have nothing: anybody may be asked about."""

KEPT_LISTS = 1_024
"""Tokens of an owner whose rows stay in memory."""

ROWS_OF_A_VECTOR = 200
"""Numbers of rows that take the room of one vector."""


class _Counted(Protocol):
    def __len__(self) -> int: ...


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V", bound=_Counted)


class _Lent(Generic[V]):
    """A value, the version of its owner's rows, how many there were when they were counted, and who uses it."""

    def __init__(self, value: V) -> None:
        self.value = value
        self.version: object = None
        self.rows = 0
        self.lock = Lock()


class HeldRows(Generic[K, V]):
    """A value for each owner, whose length is how many rows it takes; several threads may use it.

    Those asked longest ago go until `HELD_ROWS` and `HELD_OWNERS` are kept to.

    >>> held = HeldRows[str, list](list)
    >>> for owner, rows in [("ann", 60_000), ("bob", 30_000), ("eve", 40_000)]:
    ...     with held.at(owner, version="1") as value:
    ...         value += range(rows)
    >>> held.has("ann", "1"), held.has("bob", "1")
    (False, True)
    """

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._held: OrderedDict[K, _Lent[V]] = OrderedDict()
        self._rows = 0
        self._lock = Lock()

    @contextmanager
    def lend(self, key: K) -> Iterator[V]:
        """Lend an owner's value, whatever its version, to one thread at a time; an error lets go of it."""
        with self._lend(key) as held:
            yield held.value

    @contextmanager
    def at(self, key: K, version: object) -> Iterator[V]:
        """Lend an owner's value at a version, empty if another is held.

        None is the version of who has nothing. It comes again whenever all is forgotten: nothing is held of it.
        """
        if version is None:
            self.drop(key)
            yield self._make()
            return
        with self._lend(key) as held:
            if held.version != version:
                held.value, held.version = self._make(), version
            yield held.value

    def has(self, key: K, version: object) -> bool:
        """Return whether anything of this version is held."""
        held = self._held.get(key)
        return held is not None and held.version == version

    def follow(self, key: K, before: object, version: object, change: Callable[[V], None]) -> None:
        """Go along with a write of this process that made one version of another."""
        with self._lend(key) as held:
            if None in (before, version) or held.version != before:
                self.drop(key)
            else:
                change(held.value)
                held.version = version

    def drop(self, key: K) -> None:
        """Hold nothing of an owner; who uses it now is the last to do so."""
        with self._lock:
            self._drop(key)

    @contextmanager
    def _lend(self, key: K) -> Iterator[_Lent[V]]:
        held = self._locked(key)
        try:
            yield held
            self._count(key, held)
        except BaseException:
            # Nobody knows how far it was read or changed.
            if self._held.get(key) is held:
                self.drop(key)
            raise
        finally:
            held.lock.release()

    def _locked(self, key: K) -> _Lent[V]:
        while True:
            with self._lock:
                held = self._held.get(key)
                if held is None:
                    held = self._held[key] = _Lent(self._make())
                self._held.move_to_end(key)
            held.lock.acquire()
            if self._held.get(key) is held:  # else somebody has let go of it meanwhile
                return held
            held.lock.release()

    def _count(self, key: K, held: _Lent[V]) -> None:
        with self._lock:
            if self._held.get(key) is not held:
                return
            self._rows += len(held.value) - held.rows
            held.rows = len(held.value)
            while len(self._held) > 1 and (self._rows > HELD_ROWS or len(self._held) > HELD_OWNERS):
                self._drop(next(iter(self._held)))

    def _drop(self, key: K) -> None:
        if key in self._held:
            self._rows -= self._held.pop(key).rows


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
class _Parts:
    matrices: dict[str, VectorMatrix] = field(default_factory=dict)
    lists: OrderedDict[tuple[str, str], NDArray[np.int64]] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return sum(map(len, self.matrices.values())) + sum(map(len, self.lists.values())) // ROWS_OF_A_VECTOR


class HeldOwners:
    """Of the owners that were searched last, parts of their rows and the tokens that were asked for."""

    def __init__(self) -> None:
        self._held = HeldRows[str, _Parts](_Parts)

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
        with self._held.at(owner, version) as held:
            if part not in held.matrices:
                held.matrices[part] = read()
            return by(held.matrices[part])

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
        with self._held.at(owner, version) as held:
            missing = [token for token in tokens if (part, token) not in held.lists]
            if missing:
                held.lists.update(((part, token), numbers) for token, numbers in read(missing).items())
            for token in tokens:
                held.lists.move_to_end((part, token))
            found = [held.lists[part, token] for token in tokens]
            while len(held.lists) > KEPT_LISTS:
                held.lists.popitem(last=False)
            return found

    def has(self, owner: str, version: object) -> bool:
        """Return whether anything of this version is held."""
        return self._held.has(owner, version)

    def drop(self, owner: str) -> None:
        """Hold nothing of an owner."""
        self._held.drop(owner)

    def follow(self, owner: str, before: object, version: object, changes: Iterable[Change]) -> None:
        """Go along with a write of this process that made one version of another."""

        def change(held: _Parts) -> None:
            for one in changes:
                _apply(one, held)

        self._held.follow(owner, before, version, change)


def _apply(change: Change, held: _Parts) -> None:
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
