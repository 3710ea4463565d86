"""Keeps the vector index in step with the rows: what was written there, and only that, is found by meaning."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import Record, VectorIndex, VectorStore
from memstory_reference.systems.observations.observations_store import ObservationsStore

LOG = logging.getLogger(__name__)
T = TypeVar("T")

COLLECTION = "observations"
BATCH = 500
REFUSALS = (InputError, StoreConflictError)
"""What an index says to a row that it will never take."""


class Outbox:
    """Carries rows to the vector index; rows that the index refuses are set aside and reported."""

    def __init__(self, store: ObservationsStore, vectors: VectorStore) -> None:
        self._store = store
        self._vectors = vectors

    async def index(self, owner: str) -> VectorIndex:
        """Return an owner's vectors."""
        return await self._vectors.index(COLLECTION, owner)

    async def catch_up(self) -> None:
        """Carry what waits; a process may have died between the two writes."""
        pending = await self._store.run(ObservationsStore.pending)
        for batch in _batches(pending):
            for owner in dict.fromkeys(entry.owner for entry in batch):
                # Alone, for what was read must still be true when the index has it.
                async with self._vectors.alone(owner):
                    await self._carry(owner, [entry.id for entry in batch if entry.owner == owner])
            await self._store.run(ObservationsStore.strike_off, batch)

    async def mend(self) -> None:
        """Rebuild what holds other rows than the store: vectors were lost with their folder, or are left over."""
        owners = await self._store.run(ObservationsStore.owners)
        if self._store.is_shared:
            # Both are in one database, where no row is lost alone, but a schema may be.
            indexed = set(await self._vectors.owners(COLLECTION))
            owners = [owner for owner in owners if owner not in indexed]
        for owner in owners:
            rows = await self._store.run(ObservationsStore.count, owner)
            try:
                held = await (await self.index(owner)).count()
            except REFUSALS:
                continue
            if held != rows:
                # A copy of the folder, or one that was reindexed, has none.
                level = logging.WARNING if held else logging.INFO
                LOG.log(level, "the vectors of %r are not those of the %d rows; they are made again", owner, rows)
                await self.rebuild(owner)

    async def rebuild(self, owner: str) -> int:
        """Carry all rows of an owner, and drop what the store does not know; return how many the index took."""
        async with self._vectors.alone(owner):
            ids = await self._store.run(ObservationsStore.ids, owner)
            taken = sum([await self._carry(owner, batch) for batch in _batches(ids)])
            if taken:
                index = await self.index(owner)
                await index.delete(sorted({record.id for record in await index.list()} - set(ids)))
            return taken

    async def near(self, query: NDArray[np.float32], owner: str, tasks: int, floor: float) -> dict[str, float]:
        """Return the similarities of the nearest observations: of so many tasks, or all those above the floor."""
        index, fetch = await self.index(owner), tasks
        while True:
            matches = await index.query(query, fetch)
            found = {match.record.id: match.similarity for match in matches}
            known = await self._store.run(ObservationsStore.tasks, owner, list(found))
            is_last = len(matches) < fetch or matches[-1].similarity < floor
            if is_last or len(set(known.values())) >= tasks:
                return found
            # Repeats of one task take one place in the end, and must not keep others out of the pool.
            fetch *= 2

    async def _carry(self, owner: str, ids: Sequence[str]) -> int:
        found = await self._store.run(ObservationsStore.get, owner, ids)
        vectors = await self._store.run(ObservationsStore.vectors, owner, ids)
        records = [Record(id=one.id, text=one.narrative, vector=vectors[one.id]) for one in found if one.id in vectors]
        for damaged in (one for one in found if one.id not in vectors):
            LOG.warning("observation %r of %r is in no vector index: its vector has no direction", damaged.id, owner)
        try:
            index = await self.index(owner)
            await index.delete(sorted(set(ids) - set(vectors)))
            await index.upsert(records)
        except REFUSALS as refusal:
            if len(ids) == 1:
                LOG.warning("observation %r of %r is in no vector index: %s", ids[0], owner, refusal)
                return 0
            return sum([await self._carry(owner, [one]) for one in ids])
        return len(records)


def _batches(entries: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(entries), BATCH):
        yield entries[start : start + BATCH]
