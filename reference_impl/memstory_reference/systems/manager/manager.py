"""MemoryManager: store, search, forget, expire; each owner's memories in an index of their own (M-06 to M-20)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from urllib.parse import quote

from memstory_reference.errors import InputError
from memstory_reference.ports import (
    Clock,
    Embedder,
    Json,
    NewId,
    Primitive,
    Purpose,
    Record,
    VectorIndex,
    VectorStore,
)
from memstory_reference.systems.manager.memory import (
    Memory,
    MemoryType,
    SearchResult,
    is_expired,
    memory_type_of,
    stored_moment,
)
from memstory_reference.systems.manager.metadata import decode_metadata, encode_metadata

COLLECTION = "memories"
PAGE = 1_000
MAX_LIMIT = 1_000
MAX_CONTENT_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig:
    """What an operator may set; `zone` says when a day ends."""

    context_window_size: int = 5
    limit: int = 5
    min_score: float = 0.3
    cleanup_interval_seconds: float = 3600
    zone: tzinfo = field(default=UTC)


class MemoryManager:
    """The memory; every call names the owner whose memories it concerns."""

    def __init__(
        self, *, config: ManagerConfig, store: VectorStore, embedder: Embedder, clock: Clock, new_id: NewId
    ) -> None:
        self.config = config
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._new_id = new_id
        # Upserts of one context key read nothing first, so one lock for writers is only there for update and cleanup.
        self._turn = asyncio.Lock()

    async def store(
        self, owner: str, content: str, memory_type: MemoryType, metadata: Mapping[str, Json] | None = None
    ) -> Memory:
        """Store one memory and return it."""
        (memory,) = await self.store_many(owner, [(content, memory_type, metadata or {})])
        return memory

    async def store_many(
        self, owner: str, entries: Sequence[tuple[str, MemoryType, Mapping[str, Json]]]
    ) -> list[Memory]:
        """Store several memories with one embedding call."""
        now = self._clock.now().astimezone(UTC)
        memories = [
            Memory(
                id=self._new_id(),
                content=checked_content(content),
                memory_type=memory_type_of(memory_type),
                created_at=now,
                metadata=dict(metadata),
            )
            for content, memory_type, metadata in entries
        ]
        await self.put(owner, memories)
        return memories

    async def put(self, owner: str, memories: Sequence[Memory]) -> None:
        """Write memories as they are, in place of those of the same ids."""
        rows = [(memory, {**encode_metadata(memory.metadata), **_own(memory)}) for memory in memories]
        if not rows:
            return
        vectors = await self._embedder.embed([memory.content for memory in memories], Purpose.DOCUMENT)
        index = await self._index(owner)
        await index.upsert(
            [
                Record(id=memory.id, text=memory.content, metadata=metadata, vector=vector)
                for (memory, metadata), vector in zip(rows, vectors, strict=True)
            ]
        )

    async def search(
        self,
        owner: str,
        query: str,
        *,
        memory_type: MemoryType | None = None,
        limit: int | None = None,
        min_score: float | None = None,
        where: Mapping[str, Json] | None = None,
    ) -> list[SearchResult]:
        """Return living memories at or above `min_score`, best first; expired ones take no place of the `limit`."""
        limit = checked_limit(self.config.limit if limit is None else limit)
        floor = self.config.min_score if min_score is None else min_score
        if limit == 0 or not query.strip():
            return []
        conditions: dict[str, Primitive] = encode_metadata(where or {})
        if memory_type is not None:
            conditions["type"] = memory_type_of(memory_type)
        (vector,) = await self._embedder.embed([query], Purpose.QUERY)
        index = await self._index(owner)
        fetch, now = limit, self._clock.now()
        while True:
            matches = await index.query(vector, fetch, conditions or None)
            results = [
                SearchResult(memory=memory, score=min(1.0, max(0.0, match.similarity)))
                for match in matches
                if (memory := memory_of(match.record)) is not None and not is_expired(memory, now, self.config.zone)
            ]
            if len(results) >= limit or len(matches) < fetch:
                return [result for result in results if result.score >= floor][:limit]
            fetch *= 2

    async def get(self, owner: str, memory_id: str) -> Memory | None:
        """Return one living memory."""
        records = await (await self._index(owner)).get([memory_id])
        memory = memory_of(records[0]) if records else None
        return memory if memory and not is_expired(memory, self._clock.now(), self.config.zone) else None

    async def memories(
        self, owner: str, memory_type: MemoryType | None = None, limit: int | None = None
    ) -> list[Memory]:
        """Return living memories, oldest first."""
        now = self._clock.now()
        rows = await self._all(owner, {"type": memory_type} if memory_type else None)
        living = [memory for memory in rows if not is_expired(memory, now, self.config.zone)]
        return sorted(living, key=lambda memory: (memory.created_at, memory.id))[:limit]

    async def update(
        self, owner: str, memory_id: str, content: str, metadata: Mapping[str, Json] | None = None
    ) -> Memory | None:
        """Replace content (and metadata, if given) of a living memory; None where the owner has none of that id."""
        async with self._turn:
            old = await self.get(owner, memory_id)
            if old is None:
                return None
            new = Memory(
                id=old.id,
                content=checked_content(content),
                memory_type=old.memory_type,
                created_at=old.created_at,
                metadata=old.metadata if metadata is None else dict(metadata),
            )
            await self.put(owner, [new])
            return new

    async def forget(self, owner: str, memory_id: str) -> bool:
        """Delete one memory; False where the owner has none of that id."""
        return bool(await (await self._index(owner)).delete([memory_id]))

    async def forget_all(self, owner: str) -> int:
        """Delete everything of an owner; return how many memories there were."""
        index, deleted = await self._index(owner), 0
        while rows := await index.list(limit=PAGE):
            deleted += len(await index.delete([record.id for record in rows]))
        return deleted

    async def cleanup_expired(self) -> int:
        """Delete what is expired, of every owner; return how many memories that were."""
        async with self._turn:
            return sum([await self._cleanup(owner) for owner in await self._store.owners(COLLECTION)])

    async def set_context(self, owner: str, session: str, key: str, value: str) -> Memory:
        """Keep `value` under `key` for this session, to the end of the day, in place of an older one."""
        if not isinstance(key, str) or not key.strip():
            raise InputError("context key is blank")
        memory = Memory(
            id=context_id(owner, session, key),
            content=checked_content(value),
            memory_type=MemoryType.CONTEXT,
            created_at=self._clock.now().astimezone(UTC),
            metadata={"context_key": key, "session_id": session},
        )
        await self.put(owner, [memory])
        return memory

    async def get_context(self, owner: str, session: str, key: str) -> str | None:
        """Return what this session keeps under `key` today."""
        memory = await self.get(owner, context_id(owner, session, key))
        return memory.content if memory else None

    async def count(self, owner: str) -> int:
        """Count rows, expired ones that await cleanup too."""
        return await (await self._index(owner)).count()

    async def _cleanup(self, owner: str) -> int:
        now = self._clock.now()
        over = [memory.id for memory in await self._all(owner) if is_expired(memory, now, self.config.zone)]
        return len(await (await self._index(owner)).delete(over)) if over else 0

    async def _all(self, owner: str, where: Mapping[str, Primitive] | None = None) -> list[Memory]:
        index, memories, offset = await self._index(owner), [], 0
        while rows := await index.list(where, PAGE, offset):
            memories += [memory for record in rows if (memory := memory_of(record)) is not None]
            offset += len(rows)
        return memories

    async def _index(self, owner: str) -> VectorIndex:
        return await self._store.index(COLLECTION, owner)


def context_id(owner: str, session: str, key: str) -> str:
    """Return the id of a context entry; no part can reach into another.

    >>> context_id("ann", "s1", "a:b")
    'context:ann:s1:a%3Ab'
    """
    return ":".join(["context", *(quote(part, safe="") for part in (owner, session, key))])


def memory_of(record: Record) -> Memory | None:
    """Return a stored row as a memory; None for a row that is not one of ours to read (MF-3)."""
    try:
        created_at = stored_moment(record.metadata.get("created_at"))
        memory_type = memory_type_of(record.metadata.get("type"))
    except InputError:
        return None
    return Memory(
        id=record.id,
        content=record.text,
        memory_type=memory_type,
        created_at=created_at,
        metadata=decode_metadata(record.metadata),
    )


def checked_content(content: object) -> str:
    """Return `content` if it is text that says something."""
    if not isinstance(content, str):
        raise InputError(f"content must be text, not {type(content).__name__}")
    if not content.strip():
        raise InputError("content is blank")
    if len(content) > MAX_CONTENT_CHARACTERS:
        raise InputError(f"content has {len(content)} characters; at most {MAX_CONTENT_CHARACTERS}")
    return content


def checked_limit(limit: object) -> int:
    """Return `limit` if it is a number of results, 0 included."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= MAX_LIMIT:
        raise InputError(f"limit {limit!r:.40} is not allowed; allowed: whole numbers from 0 to {MAX_LIMIT}")
    return limit


def _own(memory: Memory) -> dict[str, Primitive]:
    return {"type": memory.memory_type.value, "created_at": memory.created_at.isoformat(timespec="microseconds")}
