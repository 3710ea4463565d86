"""The layers in SQLite, on one machine or in memory alone (incognito), with embeddings as BLOBs (C-24, CF-6).

Vectors are searched exactly, in a matrix of the owner's layer that is read once and then kept in step with every write;
so are the rows of the tokens that were asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.database_store import Database
from memstory_reference.storage.named_locks import NamedLocks
from memstory_reference.storage.vector_matrix import HeldRows, VectorMatrix, normalized_or_none
from memstory_reference.systems.layers.identity import microseconds
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.stores.sqlite_rows_store import (
    SCHEMA,
    SCHEMA_VERSION,
    DeletedRow,
    SqliteRows,
    WrittenRow,
)
from memstory_reference.systems.layers.stores.store import ACTIVE, ScoredRow, best_by_tokens, nearest_of

KEPT_LISTS = 1_024
"""Tokens whose rows stay in memory."""


class SqliteStore:
    """A `LayersStore` in one file, which one process owns, or in none (`IN_MEMORY`)."""

    def __init__(self, file: Path, *, model: str) -> None:
        about = {"schema": SCHEMA_VERSION, "model": model}
        self._db = Database(file, schema=SCHEMA, about=about)
        self._rows = SqliteRows(self._db)
        self._locks = NamedLocks()
        self._matrices = HeldRows[tuple[str, Layer], VectorMatrix](len)
        self._lists: OrderedDict[tuple[str, Layer, str], NDArray[np.int64]] = OrderedDict()
        self._version = self._rows.version()

    async def aput(self, record: MemoryRecord) -> None:
        await self.aput_batch([record])

    async def aput_batch(self, records: Sequence[MemoryRecord]) -> None:
        await self._db.lane.run(self._put, records)

    async def aget(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        return await self._db.lane.run(self._rows.get, owner, ids)

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        return await self._db.lane.run(
            self._rows.list_records, owner, [layer] if layer else list(Layer), standings, limit
        )

    async def asearch_similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        return await self._db.lane.run(self._similar, owner, layer, vector, limit, since)

    async def asearch_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        return await self._db.lane.run(self._by_tokens, owner, layer, tokens, limit, since)

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        return next(iter(await self.alist(owner, layer, limit=1)), None)

    async def acounts(self, owner: str) -> Mapping[tuple[Layer, Standing], int]:
        return await self._db.lane.run(self._rows.counts, owner)

    async def awithout_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        return await self._db.lane.run(self._rows.without_vector, owner, limit)

    async def adamaged_ids(self, owner: str) -> list[str]:
        return await self._db.lane.run(self._rows.damaged_ids, owner)

    async def alost(self) -> int:
        return self._db.count_lost("records")

    async def adelete(self, owner: str, ids: Sequence[str]) -> list[str]:
        return [row.id for row in await self._db.lane.run(self._delete, owner, ids)]

    async def adelete_owner(self, owner: str) -> int:
        return len(await self._db.lane.run(self._delete, owner, None))

    async def aset_recall(self, owner: str, *, on: bool) -> None:
        await self._db.lane.run(self._rows.set_recall, owner, on=on)

    async def arecall(self, owner: str) -> bool:
        return await self._db.lane.run(self._rows.recall, owner)

    async def asession_key(self) -> bytes:
        return await self._db.lane.run(self._rows.session_key)

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._locks.hold(name)

    async def aclose(self) -> None:
        await self._db.aclose()

    async def aload(self, owner: str, session: str, last: int | None = None) -> SessionMemoryBuffer | None:
        return await self._db.lane.run(self._rows.sessions.load, owner, session, last)

    async def asave(self, buffer: SessionMemoryBuffer, *, rewrite: bool = False) -> None:
        await self._db.lane.run(self._rows.sessions.save, buffer, rewrite=rewrite)

    async def aactive(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        return await self._db.lane.run(self._rows.sessions.active, owner)

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        return await self._db.lane.run(self._end, owner, session, records)

    async def aforget_sessions(self, owner: str) -> int:
        return await self._db.lane.run(self._rows.forget_sessions, owner)

    def _put(self, records: Sequence[MemoryRecord]) -> None:
        self._keep_in_step(self._rows.put(records))

    def _end(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        written = self._rows.end(owner, session, records)
        self._keep_in_step(written or ())
        return written is not None

    def _delete(self, owner: str, ids: Sequence[str] | None) -> list[DeletedRow]:
        gone = self._rows.delete_owner(owner) if ids is None else self._rows.delete(owner, ids)
        for row in gone:
            if row.tokens is None or row.layer is None:
                self._lists.clear()
            else:
                self._forget_lists(owner, row.layer, row.tokens)
            if row.layer is not None and (matrix := self._matrices.get((owner, row.layer))) is not None:
                matrix.discard(row.id)
        return gone

    def _similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None
    ) -> list[ScoredRow]:
        query = normalized_or_none(vector)
        if query is None:
            return []
        return nearest_of(self._matrix(owner, layer), query, limit, since)

    def _by_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None
    ) -> list[ScoredRow]:
        self._drop_what_is_stale()
        lists = self._postings(owner, layer, tokens)
        if not any(map(len, lists)):
            return []
        # A stable sort merges lists that are in order each; it takes a fifth of the time.
        every = np.sort(np.concatenate(lists), kind="stable")
        starts = np.append(0, np.flatnonzero(every[1:] != every[:-1]) + 1)
        numbers, held = every[starts], np.diff(starts, append=len(every))
        # With a date it is not known yet which rows count.
        numbers, held = best_by_tokens(numbers, held, limit if since is None else None)
        share = dict(zip(numbers.tolist(), held.tolist(), strict=True))
        found = [
            ScoredRow(id=name, moment=moment, score=share[number] / len(tokens))
            for number, name, moment in self._rows.by_numbers(list(share), since)
        ]
        return sorted(found, key=lambda one: -one.score)[:limit]

    def _postings(self, owner: str, layer: Layer, tokens: AbstractSet[str]) -> list[NDArray[np.int64]]:
        missing = [token for token in tokens if (owner, layer, token) not in self._lists]
        for token, numbers in self._rows.postings(owner, layer, missing).items():
            self._lists[owner, layer, token] = numbers
        found = [self._lists[owner, layer, token] for token in tokens]
        for token in tokens:
            self._lists.move_to_end((owner, layer, token))
        while len(self._lists) > KEPT_LISTS:
            self._lists.popitem(last=False)
        return found

    def _drop_what_is_stale(self) -> None:
        version = self._rows.version()
        if version != self._version:
            # Another process has written, against the rule that one owns the file: what was read may be wrong.
            self._matrices.clear()
            self._lists.clear()
            self._version = version

    def _matrix(self, owner: str, layer: Layer) -> VectorMatrix:
        self._drop_what_is_stale()
        matrix = self._matrices.get((owner, layer))
        if matrix is None:
            matrix = VectorMatrix()
            for identifier, row, moment in self._rows.vectors(owner, layer):
                matrix.put(identifier, row, moment)
            self._matrices.keep((owner, layer), matrix)
        return matrix

    def _keep_in_step(self, written: Sequence[WrittenRow]) -> None:
        for one in written:
            self._forget_lists(one.record.owner, one.record.layer, one.tokens)
            matrix = self._matrices.get((one.record.owner, one.record.layer))
            if matrix is None:
                continue
            if one.record.is_active and one.vector is not None:
                matrix.put(one.record.id, one.vector, microseconds(one.record.created_at))
            else:
                matrix.discard(one.record.id)

    def _forget_lists(self, owner: str, layer: Layer, tokens: AbstractSet[str]) -> None:
        for token in tokens:
            self._lists.pop((owner, layer, token), None)
