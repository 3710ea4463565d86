"""Turns in one schema that several processes and machines share.

A writer is alone with an owner until the end of its transaction, so that numbers give the order of adding. Each write
counts the owner's version on: a process that holds an earlier one reads what was written since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memstory_reference.storage.held_rows import HeldRows
from memstory_reference.storage.sql_database import SqlDatabase, SqlRow
from memstory_reference.systems.turns.stores.owner_pool import Index
from memstory_reference.systems.turns.stores.owner_store import HIGHEST, OwnerTurns, checked_last
from memstory_reference.systems.turns.stores.tables_store import SHARED
from memstory_reference.systems.turns.stores.turns_store import TurnsStore

T = TypeVar("T")

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
    """The owners of a schema; what is ranked of those who were asked last is in memory."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._held = HeldRows[int, Index](Index)

    async def read(self, owner: str, ask: Callable[[OwnerTurns], T], if_unknown: T) -> T:
        async with self._database.lend() as database:
            return await database.lane.run(self._read, database, owner, ask, if_unknown)

    async def write(self, owner: str, work: Callable[[OwnerTurns], T]) -> T:
        async with self._database.lend() as database:
            return await database.lane.run(lambda: work(SharedOwner(owner, None, Index(), database)))

    async def forget_owner(self, owner: str) -> int:
        async with self._database.lend() as database:
            return await database.lane.run(self._forget, database, owner)

    async def owners(self) -> list[str]:
        async with self._database.lend() as database:
            sql = "SELECT name FROM owners WHERE turns > 0"
            return sorted(row[0] for row in await database.lane.run(database.rows, sql))

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
