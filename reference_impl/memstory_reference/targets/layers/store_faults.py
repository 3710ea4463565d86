"""A layers store that the story can make fail, also in the middle of a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import overload

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import UnavailableError
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.stores.store import ACTIVE, LayersStore, Scored

SLOW_SECONDS = 0.2
BREAKS_AT = 1
"""In mode `garbage` a batch breaks when this record is taken from it: the first is written by then."""


class FaultyLayersStore:
    """A store with a switch: ok, down, slow, or garbage, in which every batch breaks at its second record."""

    def __init__(self, inner: LayersStore) -> None:
        self.mode = "ok"
        self._inner = inner

    async def aput(self, record: MemoryRecord) -> None:
        await self._pass_or_fail()
        await self._inner.aput(record)

    async def aput_batch(self, records: Sequence[MemoryRecord]) -> None:
        await self._pass_or_fail()
        await self._inner.aput_batch(self._batch(records))

    async def aget(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        await self._pass_or_fail()
        return await self._inner.aget(owner, ids)

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        await self._pass_or_fail()
        return await self._inner.alist(owner, layer, standings, limit)

    async def asearch_similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[Scored]:
        await self._pass_or_fail()
        return await self._inner.asearch_similar(owner, layer, vector, limit, since)

    async def asearch_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[Scored]:
        await self._pass_or_fail()
        return await self._inner.asearch_tokens(owner, layer, tokens, limit, since)

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        await self._pass_or_fail()
        return await self._inner.alatest(owner, layer)

    async def acounts(self, owner: str) -> Mapping[tuple[Layer, Standing], int]:
        await self._pass_or_fail()
        return await self._inner.acounts(owner)

    async def awithout_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        await self._pass_or_fail()
        return await self._inner.awithout_vector(owner, limit)

    async def adelete(self, owner: str, ids: Sequence[str]) -> list[str]:
        await self._pass_or_fail()
        return await self._inner.adelete(owner, ids)

    async def adelete_owner(self, owner: str) -> int:
        await self._pass_or_fail()
        return await self._inner.adelete_owner(owner)

    async def asession_key(self) -> bytes:
        # Read once by a real store: a process that has a session knows it.
        return await self._inner.asession_key()

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._inner.lock(name)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def aload(self, owner: str, session: str) -> SessionMemoryBuffer | None:
        await self._pass_or_fail()
        return await self._inner.aload(owner, session)

    async def asave(self, buffer: SessionMemoryBuffer) -> None:
        await self._pass_or_fail()
        await self._inner.asave(buffer)

    async def aactive(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        await self._pass_or_fail()
        return await self._inner.aactive(owner)

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        await self._pass_or_fail()
        return await self._inner.aend(owner, session, self._batch(records))

    async def aforget_sessions(self, owner: str) -> int:
        await self._pass_or_fail()
        return await self._inner.aforget_sessions(owner)

    def _batch(self, records: Sequence[MemoryRecord]) -> Sequence[MemoryRecord]:
        return _Breaking(records) if self.mode == "garbage" else records

    async def _pass_or_fail(self) -> None:
        if self.mode == "down":
            raise UnavailableError("the story has taken the store down")
        if self.mode == "slow":
            await asyncio.sleep(SLOW_SECONDS)


class _Breaking(Sequence[MemoryRecord]):
    """A batch whose second record cannot be had: what a store has begun by then must not stay."""

    def __init__(self, records: Sequence[MemoryRecord]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> MemoryRecord: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[MemoryRecord]: ...
    def __getitem__(self, place: int | slice) -> MemoryRecord | Sequence[MemoryRecord]:
        if isinstance(place, slice) or place >= BREAKS_AT:
            raise UnavailableError("the story has broken the batch at its second record")
        return self._records[place]

    def __iter__(self) -> Iterator[MemoryRecord]:
        return (self[place] for place in range(len(self)))
