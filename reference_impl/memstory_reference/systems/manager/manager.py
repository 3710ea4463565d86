"""MemoryManager: store, search, forget, expire; each owner's memories in an index of their own (M-06 to M-20)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo

from memstory_reference.ports import Clock, Embedder, Json, NewId, Primitive, Purpose, Record, VectorIndex, VectorStore
from memstory_reference.systems.manager.deadlines import Deadlines
from memstory_reference.systems.manager.inputs import (
    checked_content,
    checked_floor,
    checked_key,
    checked_limit,
    checked_query,
)
from memstory_reference.systems.manager.memories.memory import (
    Memory,
    MemoryType,
    SearchResult,
    is_expired,
    memory_type_of,
)
from memstory_reference.systems.manager.memories.metadata import encode_metadata
from memstory_reference.systems.manager.memories.nearest import nearest
from memstory_reference.systems.manager.memories.rows import (
    CONTEXT_KEY,
    SESSION_ID,
    NewMemory,
    context_id,
    is_context_entry,
    is_same_fact,
    made,
    memory_of,
    metadata_of,
)

LOG = logging.getLogger(__name__)
COLLECTION = "memories"
PAGE = 5_000
AHEAD = 4
"""How many times the limit is looked at before a search for one type is left to the store's own filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig:
    """What an operator may set; `zone` says when a day ends."""

    context_window_size: int = 5
    limit: int = 5
    min_score: float = 0.3
    cleanup_interval_seconds: float = 3600
    zone: tzinfo = field(default=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A stored memory; `is_known` says that the same fact or context key was there before."""

    memory: Memory
    is_known: bool


class MemoryManager:
    """The memory; every call names the owner whose memories it concerns."""

    def __init__(
        self, *, config: ManagerConfig, store: VectorStore, embedder: Embedder, clock: Clock, new_id: NewId
    ) -> None:
        self.config = config
        self.unreadable = 0
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._new_id = new_id
        self._deadlines = Deadlines(config.zone)
        # Held between reading rows and writing what follows from them; never while a text is embedded.
        self._turn = asyncio.Lock()

    async def store(
        self,
        owner: str,
        content: str,
        memory_type: MemoryType,
        metadata: Mapping[str, Json] | None = None,
        *,
        session: str | None = None,
    ) -> Memory:
        """Store one memory and return it."""
        new = NewMemory(content=content, memory_type=memory_type, metadata=metadata or {}, session=session)
        (stored,) = await self.store_many(owner, [new])
        return stored.memory

    async def store_many(self, owner: str, entries: Sequence[NewMemory]) -> list[Stored]:
        """Store several memories with one embedding call, all of them or none."""
        now = self._clock.now().astimezone(UTC)
        return await self.put(owner, [made(owner, entry, now, self._new_id) for entry in entries])

    async def set_context(self, owner: str, session: str, key: str, value: str) -> Memory:
        """Keep `value` under `key` for this session, to the end of the day, in place of an older one."""
        new = NewMemory(content=value, memory_type=MemoryType.CONTEXT, session=session, key=key)
        (stored,) = await self.store_many(owner, [new])
        return stored.memory

    async def get_context(self, owner: str, session: str, key: str) -> str | None:
        """Return what this session keeps under `key` today."""
        entry = await self.context_entry(owner, session, key)
        return entry.content if entry else None

    async def context_entry(self, owner: str, session: str | None, key: str) -> Memory | None:
        """Return the living context entry under `key`: of one session, or the newest of all sessions for None."""
        checked_key(key)
        if session is None:
            where: dict[str, Primitive] = {"type": MemoryType.CONTEXT.value, CONTEXT_KEY: key}
            rows = await (await self._index(owner)).list(where)
        else:
            rows = await (await self._index(owner)).get([context_id(owner, session, key)])
        now, entries = self._clock.now(), [memory for record in rows if (memory := memory_of(record))]
        living = [one for one in entries if is_context_entry(owner, one) and self._is_seen(one, now, session)]
        return max(living, key=lambda one: (one.created_at, one.id), default=None)

    async def put(self, owner: str, memories: Sequence[Memory]) -> list[Stored]:
        """Write memories in place of those of the same ids; a fact never takes the place of a different one."""
        if not memories:
            return []
        vectorless = [Record(id=one.id, text=one.content, metadata=metadata_of(one)) for one in memories]
        vectors = await self._embedder.embed([one.content for one in memories], Purpose.DOCUMENT)
        records = [replace(record, vector=vector) for record, vector in zip(vectorless, vectors, strict=True)]
        async with self._turn:
            index = await self._index(owner)
            known = {record.id: record for record in await index.get([record.id for record in records])}
            ids = [self._free_id(record, known.get(record.id)) for record in records]
            await self._write(index, owner, [replace(one, id=new) for one, new in zip(records, ids, strict=True)])
        return [
            Stored(memory=replace(one, id=identifier), is_known=identifier in known)
            for one, identifier in zip(memories, ids, strict=True)
        ]

    async def search(
        self,
        owner: str,
        query: str,
        *,
        memory_type: MemoryType | None = None,
        limit: int | None = None,
        min_score: float | None = None,
        where: Mapping[str, Json] | None = None,
        session: str | None = None,
    ) -> list[SearchResult]:
        """Return living memories at or above `min_score`, best first; expired ones take no place of the `limit`.

        With a `session`, what other sessions said or kept is left out. Of equal scores the newer comes first.
        """
        limit = checked_limit(self.config.limit if limit is None else limit)
        floor = checked_floor(self.config.min_score if min_score is None else min_score)
        conditions = _conditions(where, memory_type)
        if limit == 0 or not checked_query(query).strip():
            return []
        (vector,) = await self._embedder.embed([query], Purpose.QUERY)
        index, now = await self._index(owner), self._clock.now()
        return await nearest(
            index,
            vector,
            limit=limit,
            floor=floor,
            conditions=conditions,
            is_wanted=lambda one: memory_type in (None, one.memory_type) and self._is_seen(one, now, session),
            # A large index filters slowly, and the nearest of all types mostly hold enough of the one that is wanted.
            ahead=AHEAD * limit if memory_type is not None and not where else 0,
        )

    async def get(self, owner: str, memory_id: str) -> Memory | None:
        """Return one living memory."""
        records = await (await self._index(owner)).get([memory_id])
        memory = memory_of(records[0]) if records else None
        return memory if memory and self._is_seen(memory, self._clock.now(), None) else None

    async def memories(
        self,
        owner: str,
        types: Sequence[MemoryType] = (),
        *,
        session: str | None = None,
        limit: int | None = None,
    ) -> list[Memory]:
        """Return living memories, oldest first."""
        now, rows = self._clock.now(), await self._readable(owner)
        living = [one for one in rows if self._is_seen(one, now, session) and (not types or one.memory_type in types)]
        return sorted(living, key=lambda memory: (memory.created_at, memory.id))[:limit]

    async def update(
        self, owner: str, memory_id: str, content: str, metadata: Mapping[str, Json] | None = None
    ) -> Memory | None:
        """Replace content (and metadata, if given) of a living memory; None where the owner has none of that id."""
        (vector,) = await self._embedder.embed([checked_content(content)], Purpose.DOCUMENT)
        async with self._turn:
            old = await self.get(owner, memory_id)
            if old is None:
                return None
            new = replace(old, content=content, metadata=old.metadata if metadata is None else _kept(old, metadata))
            record = Record(id=new.id, text=content, metadata=metadata_of(new), vector=vector)
            await self._write(await self._index(owner), owner, [record])
            return new

    async def forget(self, owner: str, memory_id: str) -> bool:
        """Delete one memory; False where the owner has none of that id, or only one that has expired."""
        async with self._turn:
            is_alive = await self.get(owner, memory_id) is not None
            return bool(await (await self._index(owner)).delete([memory_id])) and is_alive

    async def forget_all(self, owner: str, *, session: str | None = None) -> int:
        """Delete everything of an owner, or what one session left; return how many memories there were."""
        index, deleted = await self._index(owner), 0
        where = {SESSION_ID: session} if session else None
        async with self._turn:
            while rows := await index.list(where, PAGE):
                deleted += len(await index.delete([record.id for record in rows]))
        return deleted

    async def cleanup_expired(self) -> int:
        """Delete what is expired, of every owner; return how many memories that were."""
        now = self._clock.now()
        due = [owner for owner in await self._store.owners(COLLECTION) if self._deadlines.is_due(owner, now)]
        return sum([await self._cleanup(owner, now) for owner in due])

    async def count(self, owner: str, memory_type: MemoryType | None = None) -> int:
        """Count rows, expired ones that await cleanup too."""
        return await (await self._index(owner)).count(_conditions(None, memory_type))

    async def _cleanup(self, owner: str, now: datetime) -> int:
        self._deadlines.begin(owner)
        try:
            index, memories = await self._index(owner), await self._readable(owner)
            over = [one.id for one in memories if is_expired(one, now, self.config.zone)]
            async with self._turn:
                # A context key may have been written anew while the others were read.
                rows = [memory_of(record) for record in await index.get(over)]
                over = [one.id for one in rows if one and is_expired(one, now, self.config.zone)]
                deleted = await index.delete(over)
        except BaseException:
            self._deadlines.forget(owner)
            raise
        gone = set(deleted)
        self._deadlines.note(owner, [memory for memory in memories if memory.id not in gone])
        return len(gone)

    async def _readable(self, owner: str) -> list[Memory]:
        index, memories, offset = await self._index(owner), list[Memory](), 0
        while rows := await index.list(None, PAGE, offset):
            memories += [memory for record in rows if (memory := memory_of(record)) is not None]
            offset += len(rows)
        if offset > len(memories):
            self.unreadable = offset - len(memories)
            LOG.warning("%d rows are no memories that can be read, and were left alone", self.unreadable)
        return memories

    async def _write(self, index: VectorIndex, owner: str, records: Sequence[Record]) -> None:
        self._deadlines.note(owner, [memory for record in records if (memory := memory_of(record))])
        await index.upsert(records)

    def _free_id(self, record: Record, old: Record | None) -> str:
        is_fact = record.metadata.get("type") == MemoryType.FACT
        return self._new_id() if is_fact and old and not is_same_fact(old.text, record.text) else record.id

    def _is_seen(self, memory: Memory, now: datetime, session: str | None) -> bool:
        is_elsewhere = session is not None and memory.metadata.get(SESSION_ID, session) != session
        return not is_expired(memory, now, self.config.zone) and not (
            is_elsewhere and memory.memory_type is not MemoryType.FACT
        )

    async def _index(self, owner: str) -> VectorIndex:
        return await self._store.index(COLLECTION, owner)


def _conditions(where: Mapping[str, Json] | None, memory_type: MemoryType | None) -> dict[str, Primitive] | None:
    conditions = encode_metadata(where or {})
    if memory_type is not None:
        conditions["type"] = memory_type_of(memory_type).value
    return conditions or None


def _kept(old: Memory, metadata: Mapping[str, Json]) -> dict[str, Json]:
    """Return new metadata with what binds a context entry to its key and session."""
    bound = {key: old.metadata[key] for key in (CONTEXT_KEY, SESSION_ID) if key in old.metadata}
    return {**metadata, **bound} if old.memory_type is MemoryType.CONTEXT else dict(metadata)
