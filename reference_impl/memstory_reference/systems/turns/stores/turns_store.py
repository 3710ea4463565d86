"""The turns of many owners: one store, on a folder of files for each owner, or on one schema that processes share."""

from __future__ import annotations

import logging
import resource
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.held_rows import HeldRows
from memstory_reference.storage.reindexing import EmbeddedFile
from memstory_reference.storage.sql_database import Database, SerialThread, SqlDatabase, SqlRow
from memstory_reference.storage.vector_matrix import MappedMatrix
from memstory_reference.systems.turns.ranking import Pool, empty_pool
from memstory_reference.systems.turns.stores.index import Index
from memstory_reference.systems.turns.stores.owner_store import (
    HIGHEST,
    IndexedTurn,
    OwnerTurns,
    checked_last,
    latest_of,
)
from memstory_reference.systems.turns.stores.tables_store import FILE, FILE_MIGRATIONS, FILE_VERSION, SHARED
from memstory_reference.systems.turns.turn import Conditions, Turn

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


class TurnsStore(ABC):
    """Turns of many owners; each operation is of one. A store that does not answer raises `UnavailableError`.

    Within a session, turns that have a speaker stand in the order in which they were added. Where the owners are, a
    subclass says.
    """

    @abstractmethod
    async def read(self, owner: str, ask: Callable[[OwnerTurns], T], if_unknown: T) -> T:
        """Return what `ask` returns; a question about a stranger makes no owner."""

    @abstractmethod
    async def write(self, owner: str, work: Callable[[OwnerTurns], T]) -> T:
        """Return what `work` returns, for an owner who is made if need be."""

    @abstractmethod
    async def forget_owner(self, owner: str) -> int:
        """Delete all of an owner; return how many turns there were."""

    @abstractmethod
    async def owners(self) -> list[str]:
        """Return who has turns, sorted."""

    @abstractmethod
    async def close(self) -> None:
        """Release the store; closing twice is harmless."""

    async def put(self, owner: str, written: Sequence[IndexedTurn]) -> None:
        """Write turns, all or none; one whose id is there replaces it, and keeps its place in its session.

        A key goes over to the last turn that brings it.
        """
        if written:
            await self.write(owner, lambda turns: turns.put(latest_of(written)))

    async def get(self, owner: str, ids: Sequence[str]) -> list[Turn]:
        """Return the turns that exist, in the order of `ids`."""
        return await self.read(owner, lambda turns: turns.get(ids), [])

    async def by_numbers(self, owner: str, numbers: Sequence[int]) -> dict[int, Turn]:
        """Return the turns that exist, by the numbers that a pool gives them."""
        return await self.read(owner, lambda turns: turns.by_numbers(numbers), {})

    async def by_keys(self, owner: str, keys: Sequence[str]) -> dict[str, Turn]:
        """Return the turns that exist, by their keys."""
        return await self.read(owner, lambda turns: turns.by_keys(keys), {})

    async def list_turns(self, owner: str, conditions: Conditions, limit: int | None = None) -> list[Turn]:
        """Return turns in the order in which they were added, or the last `limit` of them."""
        return await self.read(owner, lambda turns: turns.list_turns(conditions, limit), [])

    async def pool(
        self, owner: str, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions
    ) -> Pool:
        """Return what is ranked: the `size` nearest, the `size` best by words, and the turns beside each of them.

        All of them meet the conditions.
        """
        return await self.read(owner, lambda turns: turns.pool(vector, stems, size, conditions), empty_pool())

    async def speakers(self, owner: str) -> Collection[str]:
        """Return who speaks in this owner's turns."""
        return await self.read(owner, lambda turns: turns.speakers(), frozenset())

    async def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete turns with every trace; return the ids that existed."""
        gone: Sequence[str] = await self.read(owner, lambda turns: turns.delete("id", ids), [])
        return [one for one in dict.fromkeys(ids) if one in gone]

    async def forget_session(self, owner: str, session: str) -> int:
        """Delete the turns of a session; return how many there were."""
        return len(await self.read(owner, lambda turns: turns.delete("session", [session]), []))

    async def count(self, owner: str) -> int:
        """Count an owner's turns."""
        return await self.read(owner, lambda turns: turns.count(), 0)

    async def unreadable(self, owner: str) -> int:
        """Read an owner's turns; return how many are damaged, which everything else leaves out."""
        return await self.read(owner, lambda turns: turns.unreadable(), 0)


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


_BEGIN = (
    "INSERT INTO owners (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET version = owners.version + 1 "
    "RETURNING number, last, version"
)
_COUNT = "UPDATE owners SET last = last + ?, turns = turns + ? WHERE number = ?"


def owner_in(database: SqlDatabase, name: str) -> SqlRow | None:
    """Return the row of an owner; None of one who has none."""
    rows = database.rows("SELECT number, last, turns, version FROM owners WHERE name = ?", (name,))
    return rows[0] if rows else None


class SharedOwner(OwnerTurns):
    """One owner's turns among those of others, by a database that was lent for one call."""

    tables = SHARED

    def __init__(self, name: str, owner: SqlRow | None, index: Index, database: SqlDatabase) -> None:
        super().__init__(name, index)
        self._owner, self._database = owner, database
        self.key = (owner["number"],) if owner else ()

    @property
    def writing(self) -> SqlDatabase:
        return self._database

    def refresh(self) -> None:
        if self._owner is None or self._owner["version"] == self.index.version:
            return
        # Alone: what others write between two statements would look like damage.
        with self._database.transaction(self.name):
            owner = owner_in(self._database, self.name)
            if owner is None or owner["number"] != self._owner["number"]:
                self.index = Index()
                return
            if self.index.version:
                sql = "SELECT number FROM turns WHERE owner = ? AND changed > ?"
                rows = self._database.rows(sql, (*self.key, self.index.version))
                numbers = sorted(self.index.stale.union(row[0] for row in rows))
                if self.index.matrix is not None:
                    self.index.matrix.wipe(numbers)
                self.follow(numbers)
                self.index.stale.clear()
            else:
                self.load(checked_last(owner["last"], self._database.place))
            self.compare(owner["turns"])
            self.index.version = owner["version"]

    def is_number(self, number: int) -> bool:
        return 0 < number <= HIGHEST

    def begin(self) -> int:
        owner = self._database.execute(_BEGIN, (self.name,)).fetchone()
        self.key, self.change = (owner["number"],), (owner["version"],)
        return checked_last(owner["last"], self._database.place)

    def change_rows(self, numbers: Sequence[int], replaced: Sequence[int], more: int, dimension: int) -> None:
        self.index.stale.update(replaced)
        self._database.execute(_COUNT, (max(more, 0), more, *self.key))


class TurnsSchema(TurnsStore):
    """The owners of a schema; what is ranked of those who were asked last is in memory.

    A writer is alone with an owner until the end of its transaction, so that numbers give the order of adding. Each
    write counts the owner's version on: a process that holds an earlier one reads what was written since.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._held = HeldRows[int, Index](Index)

    async def read(self, owner: str, ask: Callable[[OwnerTurns], T], if_unknown: T) -> T:
        return await self._database.run(self._read, owner, ask, if_unknown)

    async def write(self, owner: str, work: Callable[[OwnerTurns], T]) -> T:
        return await self._database.run(lambda database: work(SharedOwner(owner, None, Index(), database)))

    async def forget_owner(self, owner: str) -> int:
        return await self._database.run(self._forget, owner)

    async def owners(self) -> list[str]:
        sql = "SELECT name FROM owners WHERE turns > 0"
        return await self._database.run(lambda database: sorted(row[0] for row in database.rows(sql)))

    async def close(self) -> None:
        await self._database.aclose()

    def _read(self, database: SqlDatabase, name: str, ask: Callable[[OwnerTurns], T], if_unknown: T) -> T:
        owner = owner_in(database, name)
        if owner is None:
            return if_unknown
        with self._held.lend(owner["number"]) as index:
            return ask(SharedOwner(name, owner, index, database))

    def _forget(self, database: SqlDatabase, name: str) -> int:
        with database.transaction(name):
            owner = owner_in(database, name)
            if owner is None:
                return 0
            for table in ("turns", "vectors"):
                database.execute(f"DELETE FROM {table} WHERE owner = ?", (owner["number"],))  # noqa: S608  (two names)
            database.execute("DELETE FROM owners WHERE number = ?", (owner["number"],))
        self._held.drop(owner["number"])
        return int(owner["turns"])
