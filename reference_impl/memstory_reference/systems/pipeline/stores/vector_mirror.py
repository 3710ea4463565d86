"""The vector index as a mirror of SQLite: it holds what a recall may find, and is brought up to date before each.

Archived memories are not in it, so they can crowd nobody out (PF-9). It is written late and in batches: a process that
dies before finds the work in the outbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memstory_reference.ports import Match, Primitive, Record, VectorIndex, VectorStore
from memstory_reference.storage.lane import Lane
from memstory_reference.systems.pipeline.ingest.planning import Vector
from memstory_reference.systems.pipeline.memory import MemoryChunk
from memstory_reference.systems.pipeline.stores.outbox_store import OutboxStore

COLLECTION = "pipeline"
BATCH = 500


class VectorMirror:
    """Keeps one index for each user; whoever calls it holds the writers' turn, but for `nearest`."""

    def __init__(self, vectors: VectorStore, outbox: OutboxStore, lane: Lane) -> None:
        self._vectors = vectors
        self._outbox = outbox
        self._lane = lane
        self._indexes: dict[str, VectorIndex] = {}
        self._verified: set[str] = set()
        self._seen_changes = -1

    async def nearest(self, owner: str, vector: Vector, k: int) -> Sequence[Match]:
        """Return the k nearest memories that the index holds."""
        return await (await self._index(owner)).query(vector, k)

    async def count(self, owner: str) -> int:
        """Count what the index holds."""
        return await (await self._index(owner)).count()

    async def waiting(self) -> int:
        """Count what waits in the outbox, of all users."""
        return await self._lane.run(self._outbox.waiting)

    async def catch_up(self) -> None:
        """Take in everything that waits in the outbox; without a write since the last time, nothing does."""
        changes = self._outbox.changes()
        if changes == self._seen_changes:
            return
        while pending := await self._lane.run(self._outbox.pending, BATCH):
            for owner in dict.fromkeys(entry.owner for entry in pending):
                await self._copy(owner, [entry.id for entry in pending if entry.owner == owner])
            await self._lane.run(self._outbox.done, pending)
        self._seen_changes = self._outbox.changes()

    async def verify(self, owner: str) -> None:
        """Once for each user: make the index anew if it does not hold as much as it should."""
        if owner not in self._verified:
            wanted = await self._lane.run(self._outbox.visible_ids, owner)
            if await self.count(owner) != len(wanted):
                await self.rebuild(owner)
            self._verified.add(owner)

    async def rebuild(self, owner: str) -> int:
        """Make a user's index anew from SQLite; return how many memories it holds."""
        index = await self._index(owner)
        wanted = await self._lane.run(self._outbox.visible_ids, owner)
        await index.delete(sorted({record.id for record in await index.list()} - set(wanted)))
        for start in range(0, len(wanted), BATCH):
            await self._copy(owner, wanted[start : start + BATCH])
        return len(wanted)

    async def _copy(self, owner: str, ids: Sequence[str]) -> None:
        index = await self._index(owner)
        found = await self._lane.run(self._outbox.visible, owner, ids)
        await index.upsert(
            [
                Record(id=memory.id, text=memory.content, metadata=_metadata(memory), vector=vector)
                for memory, vector in found
            ]
        )
        await index.delete(sorted(set(ids) - {memory.id for memory, _ in found}))

    async def _index(self, owner: str) -> VectorIndex:
        if owner not in self._indexes:
            self._indexes[owner] = await self._vectors.index(COLLECTION, owner)
        return self._indexes[owner]


def _metadata(memory: MemoryChunk) -> Mapping[str, Primitive | None]:
    """Return what a row says of itself to whoever looks into the index; each key makes reading it slower."""
    return {
        "memory_type": str(memory.memory_type),
        "session_id": memory.session_id,
        "importance": memory.importance,
        "created_at": memory.created_at.isoformat(),
        "compressed": memory.compressed or None,
        "compression_source": memory.compression_source or None,
        "source_session_id": memory.source_session_id,
    }
