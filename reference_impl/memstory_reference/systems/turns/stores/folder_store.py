"""Turns in a folder of this machine, which one process owns: two files for each owner, and a list of the owners."""

from __future__ import annotations

import logging
import resource
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.database_store import Database
from memstory_reference.storage.lane import SerialThread
from memstory_reference.storage.mapped_matrix import MappedMatrix
from memstory_reference.storage.reindexing import EmbeddedFile
from memstory_reference.systems.turns.stores.owner_pool import Index
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn, OwnerTurns, checked_last
from memstory_reference.systems.turns.stores.tables_store import FILE, FILE_MIGRATIONS, FILE_VERSION
from memstory_reference.systems.turns.stores.turns_store import TurnsStore

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

LEAST_TURNS = 64
"""An owner of fewer turns takes as much room as one of so many: 9 kB."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY)"
EMBEDDED_OWNERS = EmbeddedFile(name=OWNERS_FILE, schema=_SCHEMA, version="1")
MATRIX = "*.f32"
"""The copies of the vectors that are mapped into memory: made again where they are gone."""


class OwnerFile(OwnerTurns):
    """The files of one owner: a database, and a mapped matrix of the vectors."""

    tables = FILE
    room = 0
    """How many turns are counted for what is in memory."""

    def __init__(self, name: str, file: Path, *, model: str) -> None:
        super().__init__(name, Index())
        self._file, self._model, self.matrix_file = file, model, file.with_suffix(".f32")
        self._open: Database | None = None
        self._may_write = False
        self._is_known = False
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise
        if self.index:  # SQLite keeps in memory what it has read
            self._close_database()

    @property
    def writing(self) -> Database:
        if self._open is None or not self._may_write:
            self._close_database()
            about = {} if self._is_known else {"schema": FILE_VERSION, "model": self._model}
            schema = "" if self._is_known else FILE.schema
            self._open = Database(self._file, schema=schema, about=about, migrations=FILE_MIGRATIONS)
            self._may_write = self._is_known = True
        return self._open

    @property
    def reading(self) -> Database:
        """The file, to read: to open it again after a rest must not cost more than to search it."""
        # A log is left where the disk had no room for what it holds.
        if self._open is None and self._is_known and not Path(f"{self._file}-wal").exists():
            self._open = Database(self._file, schema=None)
        return self._open or self.writing

    def refresh(self) -> None:
        if self.index.version:
            if self.index.stale:
                self.follow(sorted(self.index.stale))
                self.index.stale.clear()
            return
        self.lost = self.writing.count_lost("turns")
        ((last,),) = self.writing.rows("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'turns'")
        with self.writing.transaction():
            self.load(checked_last(last, self.writing.place))
        self.compare(self.writing.rows("SELECT count(*) FROM turns")[0][0])
        self._fill()
        self.index.version = 1

    def begin(self) -> int:
        # Not as SQLite would: after a row whose number is damaged, it would go on from that.
        return max(self.index.columns.size - 1, 0)

    def put(self, written: Sequence[IndexedTurn]) -> Sequence[int]:
        numbers = super().put(written)
        if self.index.matrix is not None:
            self.index.matrix.put(numbers, np.stack([one.vector for one in written]))
        return numbers

    def change_rows(self, numbers: Sequence[int], replaced: Sequence[int], more: int, dimension: int) -> None:
        index = self.index
        index.stale.update(numbers)
        wiped = [one for one in replaced if self.is_number(one)]
        index.unfilled.append(wiped)  # a write that fails leaves them so
        if more > 0:
            index.matrix = index.matrix or MappedMatrix(self.matrix_file, dimension)
            index.matrix.reserve(max(numbers) + 1)
        if index.matrix is not None:
            index.matrix.wipe(wiped)

    def is_number(self, number: int) -> bool:
        return 0 < number < self.index.columns.size

    def close(self) -> None:
        """Close both files until they are asked for again; what is in memory stays."""
        if self.index.matrix is not None:
            self.index.matrix.close()
        self._close_database()

    def _close_database(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open, self._may_write = None, False


class TurnsFolder(TurnsStore):
    """The owners of a folder; `release` is called at the end."""

    def __init__(self, folder: Path, *, model: str, release: Callable[[], object] = lambda: None) -> None:
        self._folder = folder
        self._model = model
        self._release = release
        self._owners = Database(folder / OWNERS_FILE, schema=_SCHEMA, about={"schema": "1", "model": model})
        self._lane = SerialThread(str(folder))
        self._open = OrderedDict[str, OwnerFile]()
        self._awake = OrderedDict[str, None]()
        self._room = 0

    async def read(self, owner: str, ask: Callable[[OwnerTurns], T], if_unknown: T) -> T:
        def work() -> T:
            file = self._file_of(owner)
            return if_unknown if file is None else ask(file)

        return await self._lane.run(work)

    async def write(self, owner: str, work: Callable[[OwnerTurns], T]) -> T:
        def write() -> T:
            # Noted first: a file whose owner nobody knows could never be listed or forgotten.
            self._owners.execute("INSERT OR IGNORE INTO owners VALUES (?)", (owner,))
            return work(self._open_owner(owner))

        return await self._lane.run(write)

    async def forget_owner(self, owner: str) -> int:
        return await self._lane.run(self._forget_owner, owner)

    async def owners(self) -> list[str]:
        return await self._lane.run(self._with_turns)

    async def close(self) -> None:
        await self._lane.close(self._close)

    def _forget_owner(self, owner: str) -> int:
        path = self._path(owner)
        try:
            file = self._file_of(owner)
            if file is None:
                return 0
            gone = file.count()
        except UnavailableError as problem:
            LOG.warning("%s is forgotten without having been read: %s", path, problem)
            gone = 1  # at least
        if owner in self._open:
            self._let_go(owner)
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

    def _file_of(self, owner: str) -> OwnerFile | None:
        """Return the file of an owner who has one; a question about a stranger makes none."""
        return self._open_owner(owner) if owner in self._open or self._path(owner).is_file() else None

    def _open_owner(self, owner: str) -> OwnerFile:
        if owner not in self._open:
            self._open[owner] = OwnerFile(owner, self._path(owner), model=self._model)
        file = self._open[owner]
        self._open.move_to_end(owner)
        # Before it is read, which may fail with the file open.
        self._awake[owner] = None
        self._awake.move_to_end(owner)
        while len(self._awake) > OPEN_OWNERS:
            self._open[self._awake.popitem(last=False)[0]].close()
        file.refresh()
        room = max(len(file.index), LEAST_TURNS)
        self._room += room - file.room
        file.room = room
        while len(self._open) > 1 and self._room > TURNS_IN_MEMORY:
            self._let_go(next(iter(self._open)))
        return file

    def _let_go(self, owner: str) -> None:
        file = self._open.pop(owner)
        self._awake.pop(owner, None)
        self._room -= file.room
        file.close()

    def _path(self, owner: str) -> Path:
        # By a digest: an owner may have any name, and a folder may not know capitals.
        return self._folder / f"{blake2b(owner.encode(), digest_size=16).hexdigest()}.sqlite3"

    def _close(self) -> None:
        try:
            for file in self._open.values():
                file.close()
            self._owners.close()
        finally:
            self._open.clear()
            self._awake.clear()
            self._release()
