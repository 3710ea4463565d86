"""MemoryManager: store, search, forget, expire; each owner's memories in their own index (M-06 to M-20)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memstory.contract.clock import Clock
from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    checked_count,
    checked_memory,
    checked_number,
    checked_owner,
    checked_query,
    checked_text,
)
from memstory_reference.ports import Embedder, NewId, Primitive, Purpose, Record, VectorIndex, VectorStore
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.manager.memories.memory import (
    Memory,
    MemoryType,
    SearchResult,
    is_expired,
    repeating_turns,
)
from memstory_reference.systems.manager.memories.nearest import nearest_memories, newest_of_each_field_first
from memstory_reference.systems.manager.memories.rows import (
    CONTEXT_KEY,
    REWORDED,
    SESSION_ID,
    Deadlines,
    KnownFacts,
    NewMemory,
    checked_key,
    checked_session,
    conditions_of,
    context_id,
    encode_metadata,
    is_context_entry,
    keep_bindings,
    make_memory,
    memory_of,
    record_of,
    same_fact,
)
from memstory_reference.systems.manager.settings import ManagerSettings

LOG = logging.getLogger(__name__)
COLLECTION = "memories"
PAGE = 5_000
MOST_LISTED = 1_000_000
LIMIT = 5
"""How many memories a search finds that does not say."""

AHEAD = 4
"""How many times the limit is looked at before a search for one type is left to the store's own filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """A stored memory; `is_known` says that the same fact or context key was there before."""

    memory: Memory
    is_known: bool


class MemoryManager:
    """The memory; every call names the owner whose memories it concerns."""

    def __init__(
        self,
        *,
        settings: ManagerSettings,
        store: VectorStore,
        embedder: Embedder,
        clock: Clock,
        new_id: NewId,
        tombstones: Tombstones | None = None,
    ) -> None:
        self.settings = settings
        self.tombstones = tombstones or NoTombstones()
        self._store = store
        self._embedder = CheckedEmbedder(embedder)
        self._clock = clock
        self._new_id = new_id
        self._deadlines = Deadlines(settings.zone)
        self._facts = KnownFacts()

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

    async def store_many(self, owner: str, entries: Sequence[NewMemory]) -> list[StoredMemory]:
        """Store several memories with one embedding call, all of them or none."""
        checked_owner(owner)
        if isinstance(entries, str) or not isinstance(entries, Sequence):
            raise InputError(f"new memories must be a list, not {type(entries).__name__}")
        now = self._clock.now().astimezone(UTC)
        memories = [
            make_memory(owner, self._with_plain_key(one), now, self._new_id, self.settings.limits) for one in entries
        ]
        return await self.put(owner, memories)

    async def remember_fact(self, owner: str, content: str, /, **metadata: Json) -> Memory:
        """Store a fact, which stays for good, with `metadata`, in which even `content` is a free key."""
        return await self.store(owner, content, MemoryType.FACT, metadata)

    async def remember_conversation(self, owner: str, content: str, /, **metadata: Json) -> Memory:
        """Store a piece of conversation, which stays for thirty days, with `metadata`."""
        return await self.store(owner, content, MemoryType.CONVERSATION, metadata)

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
        checked_session(session)
        if session is None:
            where: dict[str, Primitive] = {"type": MemoryType.CONTEXT.value, CONTEXT_KEY: key}
            rows = await (await self._index(owner)).list(where)
        else:
            rows = await (await self._index(owner)).get([context_id(owner, session, key)])
        now, entries = self._clock.now(), [memory for record in rows if (memory := memory_of(record))]
        living = [one for one in entries if is_context_entry(owner, one) and self._is_seen(one, now, session)]
        return max(living, key=lambda one: (one.created_at, one.id), default=None)

    async def put(self, owner: str, memories: Sequence[Memory]) -> list[StoredMemory]:
        """Write memories in place of those of the same ids; a fact never takes the place of a different one.

        A fact that is known under whatever id is said again: it keeps its metadata beside what comes with it now.
        """
        memories = [self._redact(memory) for memory in memories]
        for memory in memories:
            self.tombstones.refuse(owner, memory.content)
        if not memories:
            return []
        vectors = await self._embedder.embed([one.content for one in memories], Purpose.DOCUMENT)
        async with self._alone(owner):
            index = await self._index(owner)
            await self._learn_facts(index, owner)
            ids = {one for memory in memories for one in self._facts.ids(owner, memory)}
            rows = {record.id: memory_of(record) for record in await index.get(sorted(ids))}
            stored, records = list[StoredMemory](), dict[str, Record]()
            for memory, vector in zip(memories, vectors, strict=True):
                one = self._place(owner, memory, rows)
                stored.append(one)
                rows[one.memory.id] = one.memory
                records[one.memory.id] = record_of(one.memory, vector)
            await self._write(index, owner, list(records.values()))
        return stored

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
        across: bool = False,
    ) -> list[SearchResult]:
        """Return living memories at or above `min_score`, best first; expired ones take no place of the `limit`.

        With a `session`, what other sessions said or kept is left out; `across` leaves out only what they kept as
        context. Of equal scores, and of statements of one profile field, the newer comes first.
        """
        checked_owner(owner)
        checked_session(session)
        limit = checked_count(LIMIT if limit is None else limit, "limit")
        floor = checked_number(self.settings.min_score if min_score is None else min_score, "min_score", -1, 1)
        conditions = conditions_of(where, memory_type)
        if not checked_query(query, self.settings.limits, may_be_blank=True).strip() or limit == 0:
            return []
        (vector,) = await self._embedder.embed([query], Purpose.QUERY)
        index, now = await self._index(owner), self._clock.now()
        found = await nearest_memories(
            index,
            vector,
            # Beyond the limit, for a newer statement of a field takes the place of the older one that is found.
            limit=AHEAD * limit,
            floor=floor,
            conditions=conditions,
            is_wanted=lambda one: (
                memory_type in (None, one.memory_type) and self._is_seen(one, now, session, across=across)
            ),
            # A large index filters slowly, and the nearest of all types mostly hold enough of the one that is wanted.
            ahead=AHEAD * AHEAD * limit if memory_type is not None and not where else 0,
        )
        return newest_of_each_field_first(found)[:limit]

    async def get(self, owner: str, memory_id: str) -> Memory | None:
        """Return one living memory."""
        records = await (await self._index(owner)).get([self._id(memory_id)])
        memory = memory_of(records[0]) if records else None
        return memory if memory and self._is_seen(memory, self._clock.now(), None) else None

    async def memories(
        self,
        owner: str,
        types: Sequence[MemoryType] = (),
        *,
        session: str | None = None,
        limit: int | None = None,
        across: bool = False,
    ) -> list[Memory]:
        """Return living memories, oldest first; of a `session` as `search` does."""
        checked_session(session)
        limit = None if limit is None else checked_count(limit, "limit", high=MOST_LISTED)
        now, rows = self._clock.now(), await self._readable(owner)
        living = [one for one in rows if self._is_seen(one, now, session, across=across)]
        living = [one for one in living if not types or one.memory_type in types]
        return sorted(living, key=lambda memory: (memory.created_at, memory.id))[:limit]

    async def update(
        self, owner: str, memory_id: str, content: str, metadata: Mapping[str, Json] | None = None
    ) -> Memory | None:
        """Replace content (and metadata, if given) of a living memory; None where the owner has none of that id.

        A fact that says then what another one says takes that one in.
        """
        checked_owner(owner)
        self._id(memory_id)
        encode_metadata({} if metadata is None else metadata)
        content, given = self.settings.admit_with(checked_memory(content, self.settings.limits), metadata or {})
        metadata = None if metadata is None else given
        self.tombstones.refuse(owner, content)
        (vector,) = await self._embedder.embed([content], Purpose.DOCUMENT)
        async with self._alone(owner):
            old = await self.get(owner, memory_id)
            if old is None:
                return None
            index = await self._index(owner)
            new = replace(
                old, content=content, metadata=old.metadata if metadata is None else keep_bindings(old, metadata)
            )
            await self._learn_facts(index, owner)
            rows = map(memory_of, await index.get(self._facts.ids(owner, new)))
            twin = same_fact(new, [one for one in rows if one and one.id != new.id])
            if twin:
                new = replace(new, metadata={**twin.metadata, **new.metadata})
            await self._write(index, owner, [record_of(new, vector)])
            await index.delete([twin.id] if twin else [])
            return new

    async def forget(self, owner: str, memory_id: str, *, durable: bool = False) -> bool:
        """Delete one memory, `durable` for good: nothing that tells it again is stored.

        False where the owner has none of that id, or only one that has expired.
        """
        async with self._alone(owner):
            memory = await self.get(owner, memory_id)
            if durable and memory:
                self.tombstones.bury(owner, [memory.content])
            return bool(await (await self._index(owner)).delete([self._id(memory_id)])) and memory is not None

    async def with_repeats(self, owner: str, memory_id: str) -> list[Memory]:
        """Return a living memory and the turns that repeat what it states; none where the owner has none of that id."""
        memory = await self.get(owner, memory_id)
        turns = [MemoryType.CONVERSATION]
        return [memory, *repeating_turns(memory, await self.memories(owner, turns))] if memory else []

    async def forget_saying(self, owner: str, memory_id: str) -> list[Memory]:
        """Delete one memory and the turns that repeat it, so that no search tells it again; return them."""
        gone = await self.with_repeats(owner, memory_id)
        return [one for one in gone if await self.forget(owner, one.id)]

    async def forget_all(self, owner: str, *, session: str | None = None, durable: bool = False) -> int:
        """Delete everything of an owner, or what one session left; return how many memories there were."""
        index, deleted = await self._index(owner), 0
        checked_session(session)
        where = None if session is None else {SESSION_ID: session}
        async with self._alone(owner):
            while rows := await index.list(where, PAGE):
                if durable:
                    self.tombstones.bury(owner, [record.text for record in rows])
                deleted += len(await index.delete([record.id for record in rows]))
        return deleted

    async def cleanup_expired(self) -> int:
        """Delete what is expired, of every owner; return how many memories that were."""
        now = self._clock.now()
        # Of a shared store nobody hears of every write.
        due = [one for one in await self.owners() if self._store.is_shared or self._deadlines.is_due(one, now)]
        return sum([await self._cleanup(owner, now) for owner in due])

    async def close(self) -> None:
        """Release the store; what was acknowledged stays."""
        self.tombstones.close()
        await self._store.close()

    @property
    def embedder_name(self) -> str:
        """The model whose vectors are compared."""
        return self._embedder.model

    async def owners(self) -> Sequence[str]:
        """Return who has memories here."""
        return await self._store.owners(COLLECTION)

    async def count(self, owner: str, memory_type: MemoryType | None = None) -> int:
        """Count rows, expired ones that await cleanup too."""
        return await (await self._index(owner)).count(conditions_of(None, memory_type))

    async def unreadable(self, owner: str) -> int:
        """Count the owner's rows that are damaged."""
        return await self.count(owner) - len(await self._readable(owner))

    async def _cleanup(self, owner: str, now: datetime) -> int:
        self._deadlines.begin(owner)
        try:
            index, memories = await self._index(owner), await self._readable(owner, self._expiring)
            over = [one.id for one in memories if is_expired(one, now, self.settings.zone)]
            async with self._alone(owner):
                # A context key may have been written again while the others were read.
                rows = [memory_of(record) for record in await index.get(over)]
                over = [one.id for one in rows if one and is_expired(one, now, self.settings.zone)]
                deleted = await index.delete(over)
        except BaseException:
            self._deadlines.forget(owner)
            raise
        gone = set(deleted)
        self._facts.note(owner, memories)
        self._deadlines.note(owner, [memory for memory in memories if memory.id not in gone])
        return len(gone)

    @property
    def _expiring(self) -> Sequence[Mapping[str, Primitive] | None]:
        """Which rows a cleanup reads: of its own store all, to know the facts; of a shared one what can expire."""
        types = (MemoryType.CONVERSATION, MemoryType.CONTEXT) if self._store.is_shared else (None,)
        return [conditions_of(None, one) for one in types]

    async def _readable(self, owner: str, which: Sequence[Mapping[str, Primitive] | None] = (None,)) -> list[Memory]:
        index, memories, lost = await self._index(owner), list[Memory](), 0
        for where in which:
            offset = 0
            while rows := await index.list(where, PAGE, offset):
                found = [memory for record in rows if (memory := memory_of(record)) is not None]
                memories += found
                lost += len(rows) - len(found)
                offset += len(rows)
        if lost:
            LOG.warning("%d rows are not memories that can be read, and were left alone", lost)
        return memories

    async def _learn_facts(self, index: VectorIndex, owner: str) -> None:
        """Learn which facts another process has changed."""
        if self._store.is_shared:
            rows = await index.list({REWORDED: True})
            self._facts.note(owner, [memory for record in rows if (memory := memory_of(record))])

    async def _write(self, index: VectorIndex, owner: str, records: Sequence[Record]) -> None:
        memories = [memory for record in records if (memory := memory_of(record))]
        self._deadlines.note(owner, memories)
        self._facts.note(owner, memories)
        await index.upsert(records)

    def _place(self, owner: str, memory: Memory, rows: Mapping[str, Memory | None]) -> StoredMemory:
        """Return a memory under the id at which it belongs, given the rows that may be in its place."""
        old = same_fact(memory, (rows.get(one) for one in self._facts.ids(owner, memory)))
        if old:
            said_again = max(old.created_at, memory.created_at)
            metadata = {**old.metadata, **memory.metadata}
            return StoredMemory(
                memory=replace(memory, id=old.id, metadata=metadata, created_at=said_again), is_known=True
            )
        is_taken = memory.id in rows
        if is_taken and memory.memory_type is MemoryType.FACT:
            return StoredMemory(memory=replace(memory, id=self._new_id()), is_known=False)
        return StoredMemory(memory=memory, is_known=is_taken)

    def _with_plain_key(self, new: NewMemory) -> NewMemory:
        """Return a new memory whose key holds no secret of its content; what has other types is refused later."""
        if not (isinstance(new, NewMemory) and isinstance(new.key, str) and isinstance(new.content, str)):
            return new
        return replace(new, key=self.settings.admit_key(new.key, new.content))

    def _redact(self, memory: Memory) -> Memory:
        """Return a memory without its secrets."""
        encode_metadata(memory.metadata)
        content, metadata = self.settings.admit_with(memory.content, memory.metadata)
        return replace(memory, content=content, metadata=metadata)

    def _id(self, memory_id: object) -> str:
        longest = self.settings.limits.max_query_characters
        return checked_text(memory_id, "id", longest, may_be_blank=True)

    def _is_seen(self, memory: Memory, now: datetime, session: str | None, *, across: bool = False) -> bool:
        is_elsewhere = session is not None and memory.metadata.get(SESSION_ID, session) != session
        is_theirs = memory.memory_type is MemoryType.CONTEXT or (
            memory.memory_type is MemoryType.CONVERSATION and not across
        )
        return not is_expired(memory, now, self.settings.zone) and not (is_elsewhere and is_theirs)

    def _alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Be alone between reading rows and writing what follows from them; never while a text is embedded."""
        return self._store.alone(checked_owner(owner))

    async def _index(self, owner: str) -> VectorIndex:
        return await self._store.index(COLLECTION, checked_owner(owner))
