"""Turns in a folder of this machine, which one process owns: two files for each owner, and a list of the owners."""

from __future__ import annotations

import logging
import resource
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.database_store import Database
from memstory_reference.storage.lane import SerialThread
from memstory_reference.storage.reindexing import EmbeddedFile
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import Pool, empty_pool
from memstory_reference.systems.turns.stores.owner_store import SUFFIX, OwnerStore
from memstory_reference.systems.turns.stores.store import IndexedTurn
from memstory_reference.systems.turns.turn import Turn

LOG = logging.getLogger(__name__)
T = TypeVar("T")

OWNERS_FILE = "owners.sqlite3"
FILES_OF_AN_OWNER = 4
"""The database, its log, the index of the log, and the vectors."""

LEAST_OPEN, MOST_OPEN = 16, 1024


def owners_within(files: int) -> int:
    """Return how many owners fit into half of the files that a process may open, from 16 to 1,024."""
    if files == resource.RLIM_INFINITY:
        return MOST_OPEN
    return min(max(files // 2 // FILES_OF_AN_OWNER, LEAST_OPEN), MOST_OPEN)


OPEN_OWNERS = owners_within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""Files of this many owners stay open; those of the longest unused owner are closed first."""

TURNS_IN_MEMORY = 2_000_000
"""What is ranked of so many turns stays in memory; the longest unused owner goes first."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY)"
EMBEDDED_OWNERS = EmbeddedFile(name=OWNERS_FILE, schema=_SCHEMA, version="1")
_NOTHING = empty_pool()


class SqliteTurns:
    """A `TurnsStore`; `release` is called at the end."""

    def __init__(self, folder: Path, *, model: str, release: Callable[[], object] = lambda: None) -> None:
        self._folder = folder
        self._model = model
        self._release = release
        self._owners = Database(folder / OWNERS_FILE, schema=_SCHEMA, about={"schema": "1", "model": model})
        self._lane = SerialThread(str(folder))
        self._open = OrderedDict[str, OwnerStore]()
        self._awake = OrderedDict[str, None]()

    async def put(self, owner: str, written: Sequence[IndexedTurn]) -> None:
        await self._lane.run(self._put, owner, written)

    async def get(self, owner: str, ids: Sequence[str]) -> list[Turn]:
        return await self._of(owner, lambda file: file.get(ids), [])

    async def by_numbers(self, owner: str, numbers: Sequence[int]) -> dict[int, Turn]:
        return await self._of(owner, lambda file: file.by_numbers(numbers), {})

    async def by_keys(self, owner: str, keys: Sequence[str]) -> dict[str, Turn]:
        return await self._of(owner, lambda file: file.by_keys(keys), {})

    async def list_turns(self, owner: str, conditions: Conditions, limit: int | None = None) -> list[Turn]:
        return await self._of(owner, lambda file: file.list_turns(conditions, limit), [])

    async def pool(
        self, owner: str, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions
    ) -> Pool:
        return await self._of(owner, lambda file: file.pool(vector, stems, size, conditions), _NOTHING)

    async def speakers(self, owner: str) -> Collection[str]:
        return await self._of(owner, lambda file: file.speakers(), frozenset())

    async def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        return await self._of(owner, lambda file: file.delete(ids), [])

    async def forget_session(self, owner: str, session: str) -> int:
        return await self._of(owner, lambda file: len(file.delete(file.of_session(session))), 0)

    async def forget_owner(self, owner: str) -> int:
        return await self._lane.run(self._forget_owner, owner)

    async def owners(self) -> list[str]:
        return await self._lane.run(self._with_turns)

    async def count(self, owner: str) -> int:
        return await self._of(owner, lambda file: file.count(), 0)

    async def unreadable(self, owner: str) -> int:
        return await self._of(owner, lambda file: file.unreadable(), 0)

    async def close(self) -> None:
        await self._lane.close(self._close)

    async def _of(self, owner: str, ask: Callable[[OwnerStore], T], if_unknown: T) -> T:
        def work() -> T:
            file = self._file_of(owner)
            return if_unknown if file is None else ask(file)

        return await self._lane.run(work)

    def _put(self, owner: str, written: Sequence[IndexedTurn]) -> None:
        # Noted first: a file whose owner nobody knows could never be listed or forgotten.
        self._owners.execute("INSERT OR IGNORE INTO owners VALUES (?)", (owner,))
        self._open_owner(owner).put(written)

    def _forget_owner(self, owner: str) -> int:
        path = self._path(owner)
        try:
            file = self._file_of(owner)
            if file is None:
                return 0
            gone = file.count()
            self._open.pop(owner).close()
            self._awake.pop(owner, None)
        except UnavailableError as problem:
            LOG.warning("%s is forgotten without having been read: %s", path, problem)
            gone = 1  # at least
        try:
            for name in (path, path.with_suffix(".f32"), Path(f"{path}-wal"), Path(f"{path}-shm")):
                name.unlink(missing_ok=True)
        except OSError as problem:
            raise UnavailableError(f"{path} cannot be removed: {problem.strerror}") from problem
        self._owners.execute("DELETE FROM owners WHERE owner = ?", (owner,))
        self._owners.forget_log()
        return gone

    def _with_turns(self) -> list[str]:
        noted = [row[0] for row in self._owners.rows("SELECT owner FROM owners") if isinstance(row[0], str)]
        return sorted(filter(self._may_have_turns, noted))

    def _may_have_turns(self, owner: str) -> bool:
        try:
            file = self._file_of(owner)
        except UnavailableError as problem:
            LOG.warning("nobody knows how many turns %r has: %s", owner, problem)
            return True  # one whose file is damaged must not shut out the others, and can be forgotten
        return file is not None and bool(file.count())

    def _file_of(self, owner: str) -> OwnerStore | None:
        """Return the file of an owner who has one; a question about a stranger makes none."""
        return self._open_owner(owner) if owner in self._open or self._path(owner).is_file() else None

    def _open_owner(self, owner: str) -> OwnerStore:
        if owner not in self._open:
            self._open[owner] = OwnerStore(self._path(owner), model=self._model)
        self._open.move_to_end(owner)
        self._awake[owner] = None
        self._awake.move_to_end(owner)
        while len(self._awake) > OPEN_OWNERS:
            self._open[self._awake.popitem(last=False)[0]].close()
        while len(self._open) > 1 and sum(file.count() for file in self._open.values()) > TURNS_IN_MEMORY:
            longest, file = self._open.popitem(last=False)
            self._awake.pop(longest, None)
            file.close()
        return self._open[owner]

    def _path(self, owner: str) -> Path:
        # By a digest: an owner may have any name, and a folder may not know capitals.
        return self._folder / f"{blake2b(owner.encode(), digest_size=16).hexdigest()}{SUFFIX}"

    def _close(self) -> None:
        try:
            for file in self._open.values():
                file.close()
            self._owners.close()
        finally:
            self._open.clear()
            self._awake.clear()
            self._release()
