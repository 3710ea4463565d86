"""The layers' store, on SQLite (a file, or memory alone: C-24, CF-6) and Postgres; one suite of tests holds for both.

Rows are in namespaces (owner, layer). Searches, `alatest` and counts of what is retrieved see active rows alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.held_rows import HeldOwners
from memstory_reference.storage.sql_database import Database, SqlDatabase
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.stores.rows_store import ACTIVE, LayersRows, ScoredRow
from memstory_reference.systems.layers.stores.tables_store import COLUMNS, SCHEMA, SCHEMA_VERSION, seal_of

P = ParamSpec("P")
T = TypeVar("T")


class LayersStore:
    """The three layers of many owners, and the buffers of sessions that have not ended, so that an end is atomic.

    A put replaces the row of the same owner, layer and id; where it brings no vector and the text is unchanged, the row
    keeps the vector that it has. A store that does not answer raises `UnavailableError`, and has then written nothing.
    What a task does under a lock fails once the lock is lost, instead of meeting somebody else's.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._db = database
        self._held = HeldOwners()
        self._lent = dict[asyncio.Task[Any] | None, LayersRows]()
        self._key: bytes | None = None

    async def aput(self, record: MemoryRecord) -> None:
        """Write one row."""
        await self.aput_batch([record])

    async def aput_batch(self, records: Sequence[MemoryRecord], buffer: SessionMemoryBuffer | None = None) -> None:
        """Write all rows and the session they come from, or none, also if `records` fails, or the process dies."""
        await self.arun(LayersRows.put, records, buffer)

    async def aget(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the owner's rows that exist, whatever their standing, in the order of `ids`."""
        return await self.arun(LayersRows.get, owner, ids)

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        """Return rows, newest first, ties by id."""
        return await self.arun(LayersRows.list_records, owner, [layer] if layer else list(Layer), standings, limit)

    async def asearch_similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        """Return the rows nearest by cosine, exactly: best first, ties by newer, then id; rows without vector are out.

        `since` leaves out what was created before it.
        """
        return await self.arun(LayersRows.nearest, owner, layer, vector, limit, since)

    async def asearch_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        """Return the rows by their share of `tokens`, best first, ties by newer, then id; a row with none is out."""
        return await self.arun(LayersRows.by_tokens, owner, layer, tokens, limit, since)

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        """Return the newest row, whatever its age."""
        return next(iter(await self.alist(owner, layer, limit=1)), None)

    async def acounts(self, owner: str) -> Mapping[tuple[Layer, Standing], int]:
        """Count rows; a missing pair is 0."""
        return await self.arun(LayersRows.counts, owner)

    async def awithout_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        """Return active rows that were written while there was no embedding, oldest first."""
        return await self.arun(LayersRows.without_vector, owner, limit)

    async def adamaged_ids(self, owner: str) -> list[str]:
        """Return the ids of rows that were changed outside memstory: no read gives them, a delete removes them."""
        return await self.arun(LayersRows.damaged_ids, owner)

    async def alost(self) -> int:
        """Return how many rows, of all owners, some read lacks since the store was damaged, as far as is known."""
        return self._db.count_lost("records")

    async def adelete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete rows for good, with every trace in the store's indexes; return the ids that existed."""
        return await self.arun(LayersRows.delete, owner, ids)

    async def adelete_owner(self, owner: str) -> int:
        """Delete all rows of an owner, and the switch; return how many rows there were."""
        return await self.arun(LayersRows.delete_owner, owner)

    async def aset_recall(self, owner: str, *, on: bool) -> None:
        """Keep whether an owner's memory is read, until it is switched again or the owner forgotten."""
        await self.arun(LayersRows.set_recall, owner, on=on)

    async def arecall(self, owner: str) -> bool:
        """Say whether an owner's memory is read: yes, unless it was switched off."""
        return await self.arun(LayersRows.recall, owner)

    async def asession_key(self) -> bytes:
        """Return the secret with which this store's sessions are hashed: at least 16 random bytes, made once."""
        if self._key is None:
            self._key = await self.arun(LayersRows.session_key)
        return self._key

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold `name` against everybody who writes to the same store; not to be taken twice by one task."""
        task = asyncio.current_task()
        outer = self._lent.get(task)
        async with (outer.database if outer else self._db).hold(name) as database:
            self._lent[task] = LayersRows(database, self._held)
            try:
                yield
            finally:
                del self._lent[task]
                if outer is not None:
                    self._lent[task] = outer

    async def aclose(self) -> None:
        """Release the store; closing twice is harmless."""
        await self._db.aclose()

    async def aload(self, owner: str, session: str, last: int | None = None) -> SessionMemoryBuffer | None:
        """Return the buffer of an active session, with all its turns or the `last` ones."""
        return await self.arun(lambda rows: rows.sessions.load(owner, session, last))

    async def asave(self, buffer: SessionMemoryBuffer, *, rewrite: bool = False) -> None:
        """Write the buffer of a session; turns that are stored and that it does not hold stay.

        Of stored turns only `extracted` is written; with `rewrite` all turns are those of the buffer, word for word.
        """
        await self.arun(lambda rows: rows.sessions.save(buffer, rewrite=rewrite))

    async def aactive(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        """Return the active sessions of an owner, or of all, without their turns, the longest silent first."""
        return await self.arun(lambda rows: rows.sessions.active(owner))

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        """Write `records` and take the session off, both or neither; False, writing nothing, if it has ended before."""
        return await self.arun(LayersRows.end, owner, session, records)

    async def aforget_sessions(self, owner: str) -> int:
        """Drop an owner's active sessions with all that was held; return how many there were."""
        return await self.arun(lambda rows: rows.sessions.forget(owner))

    async def arun(self, work: Callable[Concatenate[LayersRows, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` finds or writes by the rows, which may ask them several things at once.

        It goes by the database of the lock that the task holds, or by one that is lent for this alone.
        """
        rows = self._lent.get(asyncio.current_task())
        if rows is not None:
            return await rows.database.lane.run(work, rows, *args, **kwargs)
        async with self._db.lend() as database:
            return await database.lane.run(work, LayersRows(database, self._held), *args, **kwargs)


def layers_database(file: Path, *, model: str) -> Database:
    """Open or make the layers' file, or one in memory."""
    database = Database(file, schema=SCHEMA, about={"schema": SCHEMA_VERSION, "model": model})
    _seal_all(database)
    return database


def _seal_all(database: SqlDatabase) -> None:
    """Give the rows of an earlier schema their checksums; one that is damaged already gets none."""
    rows = database.rows(
        f"SELECT {', '.join(f'r.{name}' for name in COLUMNS.split(', '))}, n.owner, n.layer FROM records AS r "  # noqa: S608
        "JOIN namespaces AS n ON n.number = r.namespace WHERE r.checksum IS NULL"
    )
    seals = [
        (seal_of(row, row["owner"], row["layer"]), row["row"])
        for row in rows
        if not any(isinstance(one, bytes) for one in row)
    ]
    if seals:
        with database.transaction():
            database.executemany("UPDATE records SET checksum = ? WHERE row = ?", seals)
