"""The layers in memory: for incognito, where nothing may outlive the process, and for tests."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.vector_matrix import VectorMatrix, normalized_or_none
from memstory_reference.systems.layers.identity import microseconds
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing, text_of
from memstory_reference.systems.layers.stores.found import nearest_of
from memstory_reference.systems.layers.stores.named_locks import NamedLocks
from memstory_reference.systems.layers.stores.store import ACTIVE, ScoredRow
from memstory_reference.text.token_sets import token_recall, token_set


class InMemoryStore:
    """A `LayersStore` without a byte on disk."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], MemoryRecord] = {}
        self._tokens: dict[tuple[str, str], frozenset[str]] = {}
        self._vectors: dict[tuple[str, Layer], VectorMatrix] = {}
        self._sessions: dict[tuple[str, str], SessionMemoryBuffer] = {}
        self._recall_off: set[str] = set()
        self._locks = NamedLocks()
        self._key = secrets.token_bytes(32)

    async def aput(self, record: MemoryRecord) -> None:
        await self.aput_batch([record])

    async def aput_batch(self, records: Sequence[MemoryRecord]) -> None:
        # Read to the end before anything is written: reading may fail.
        for record in list(records):
            self._put(record)

    async def aget(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        wanted = dict.fromkeys(ids)
        return [_bare(self._rows[owner, one]) for one in wanted if (owner, one) in self._rows]

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        found = [row for row in self._of(owner, layer) if row.standing in standings]
        return [_bare(row) for row in _newest_first(found)[:limit]]

    async def asearch_similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        matrix = self._vectors.get((owner, layer))
        query = normalized_or_none(vector)
        return [] if matrix is None or query is None else nearest_of(matrix, query, limit, since)

    async def asearch_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        rows = [row for row in self._of(owner, layer) if row.is_active and (since is None or row.created_at >= since)]
        scored = [
            ScoredRow(id=row.id, moment=microseconds(row.created_at), score=recall)
            for row in _newest_first(rows)
            if (recall := token_recall(tokens, self._tokens[owner, row.id])) > 0
        ]
        return sorted(scored, key=lambda one: -one.score)[:limit]

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        return next(iter(await self.alist(owner, layer, limit=1)), None)

    async def acounts(self, owner: str) -> Mapping[tuple[Layer, Standing], int]:
        return Counter((row.layer, row.standing) for row in self._of(owner, None))

    async def awithout_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        found = [row for row in self._of(owner, None) if row.is_active and row.vector is None]
        return _newest_first(found)[::-1][:limit]

    async def adamaged(self, owner: str) -> list[str]:
        del owner  # nobody else can reach what is in memory alone
        return []

    async def alost(self) -> int:
        return 0

    async def adelete(self, owner: str, ids: Sequence[str]) -> list[str]:
        return [one for one in dict.fromkeys(ids) if self._remove(owner, one)]

    async def adelete_owner(self, owner: str) -> int:
        self._recall_off.discard(owner)
        return len(await self.adelete(owner, [row.id for row in self._of(owner, None)]))

    async def aset_recall(self, owner: str, *, on: bool) -> None:
        (self._recall_off.discard if on else self._recall_off.add)(owner)

    async def arecall(self, owner: str) -> bool:
        return owner not in self._recall_off

    async def asession_key(self) -> bytes:
        return self._key

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._locks.hold(name)

    async def aclose(self) -> None:
        self._rows.clear()
        self._tokens.clear()
        self._vectors.clear()
        self._sessions.clear()
        self._recall_off.clear()

    async def aload(self, owner: str, session: str, last: int | None = None) -> SessionMemoryBuffer | None:
        found = self._sessions.get((owner, session))
        if found is None or last is None:
            return found
        return replace(found, turns=found.turns[max(0, len(found.turns) - last) :])

    async def asave(self, buffer: SessionMemoryBuffer, *, rewrite: bool = False) -> None:
        key = (buffer.owner, buffer.session)
        self._sessions[key] = buffer if rewrite else buffer.over(self._sessions.get(key))

    async def aactive(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        found = [replace(one, turns=()) for one in self._sessions.values() if owner is None or one.owner == owner]
        return sorted(found, key=lambda one: (one.last_at, one.owner, one.session))

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        if (owner, session) not in self._sessions:
            return False
        await self.aput_batch(records)
        del self._sessions[owner, session]
        return True

    async def aforget_sessions(self, owner: str) -> int:
        keys = [key for key in self._sessions if key[0] == owner]
        for key in keys:
            del self._sessions[key]
        return len(keys)

    def _of(self, owner: str, layer: Layer | None) -> Iterable[MemoryRecord]:
        return [row for (whose, _), row in self._rows.items() if whose == owner and layer in (None, row.layer)]

    def _put(self, record: MemoryRecord) -> None:
        old = self._rows.get((record.owner, record.id))
        vector = normalized_or_none(record.vector)
        if vector is None and old is not None and text_of(old.content) == text_of(record.content):
            vector = old.vector
        self._remove(record.owner, record.id)
        self._rows[record.owner, record.id] = replace(record, vector=vector)
        self._tokens[record.owner, record.id] = token_set(text_of(record.content))
        if record.is_active and vector is not None:
            matrix = self._vectors.setdefault((record.owner, record.layer), VectorMatrix())
            matrix.put(record.id, vector, microseconds(record.created_at))

    def _remove(self, owner: str, identifier: str) -> bool:
        row = self._rows.pop((owner, identifier), None)
        if row is None:
            return False
        del self._tokens[owner, identifier]
        if (owner, row.layer) in self._vectors:
            self._vectors[owner, row.layer].discard(identifier)
        return True


def _bare(row: MemoryRecord) -> MemoryRecord:
    return replace(row, vector=None)


def _newest_first(rows: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    return sorted(sorted(rows, key=lambda row: row.id), key=lambda row: row.created_at, reverse=True)
