"""A layers store that the story can make fail, also in the middle of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast, overload

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.faults import FaultSwitch, FaultyPort
from memstory_reference.systems.layers.records.record import MemoryRecord
from memstory_reference.systems.layers.stores.layers_store import LayersStore

BREAKS_AT = 1
"""In mode `garbage` a batch breaks when this record is taken from it: the first is written by then."""


def faulty_layers_store(store: LayersStore, switch: FaultSwitch) -> LayersStore:
    """Return `store` behind `switch`; in mode `garbage` every batch breaks at its second record."""
    return cast("LayersStore", _FaultyLayersStore(store, switch))


class _FaultyLayersStore(FaultyPort):
    # A real store reads the session key once: a process that has a session knows it.
    free = frozenset({"asession_key", "alost", "aclose"})

    async def aput_batch(self, records: Sequence[MemoryRecord]) -> None:
        await self._switch.pass_or_fail()
        await self._inner.aput_batch(self._batch(records))

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        await self._switch.pass_or_fail()
        return bool(await self._inner.aend(owner, session, self._batch(records)))

    def _batch(self, records: Sequence[MemoryRecord]) -> Sequence[MemoryRecord]:
        return _Breaking(records, self._switch)


class _Breaking(Sequence[MemoryRecord]):
    """A batch whose second record cannot be had in mode `garbage`: what a store has begun by then must not stay."""

    def __init__(self, records: Sequence[MemoryRecord], switch: FaultSwitch) -> None:
        self._records = records
        self._switch = switch

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> MemoryRecord: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[MemoryRecord]: ...
    def __getitem__(self, place: int | slice) -> MemoryRecord | Sequence[MemoryRecord]:
        if (isinstance(place, slice) or place >= BREAKS_AT) and self._switch.garbles():
            raise UnavailableError("the story has broken the batch at its second record")
        return self._records[place]

    def __iter__(self) -> Iterator[MemoryRecord]:
        return (self[place] for place in range(len(self)))
