"""MemoryManager: store, search, forget, expire; each owner's memories in their own index (M-06 to M-20)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope, Tree
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
from memstory_reference.ports import Primitive, Purpose, Record, VectorIndex
from memstory_reference.system_memory import ForgetResult, read_rows
from memstory_reference.systems.manager.memories import (
    CONTEXT_KEY,
    REWORDED,
    SESSION_ID,
    Deadlines,
    KnownFacts,
    Memory,
    MemoryType,
    SearchResult,
    checked_key,
    checked_session,
    conditions_of,
    context_id,
    encode_metadata,
    is_context_entry,
    is_expired,
    keep_bindings,
    make_memory,
    memory_of,
    memory_type_of,
    nearest_memories,
    newest_of_each_field_first,
    record_of,
    repeating_turns,
    same_fact,
    stored_moment,
)
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.text.secret_guard import left_out
from memstory_reference.vector_memory import VectorMemory

LOG = logging.getLogger(__name__)
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

    @property
    def outcome(self) -> str:
        """`bumped` for a fact that is said again, `updated` for a context key that is written again."""
        again = "bumped" if self.memory.memory_type is MemoryType.FACT else "updated"
        return again if self.is_known else "stored"


@dataclass(kw_only=True, eq=False)
class MemoryManager(VectorMemory):
    """What is remembered; every call names the owner whose memories it concerns."""

    operations = frozenset(
        {
            *("add", "add.verbatim", "add.exact", "add.key", "add.batch_atomic", "get.key", "get.id", "list", "update"),
            *("add.metadata", "add.metadata.lists"),
            *("search", "search.scores", "search.min_score", "search.where"),
            *("delete", "delete.reports_missing", "delete.scope", "delete.about", "delete.durable", "update.about"),
            "identifiers.spellings",
            *("dedup", "expiry", "expiry.read_filter", "scope.session"),
        }
    )
    counted = ("conversation", "fact", "context")

    settings: ManagerSettings
    collection = "memories"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._deadlines = Deadlines(self.settings.zone)
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
        item = Item(text=content, kind=memory_type_of(memory_type), metadata={} if metadata is None else metadata)
        (stored,) = await self._remember([item], Scope(user=owner, session=session))
        return stored.memory

    async def remember_fact(self, owner: str, content: str, /, **metadata: Json) -> Memory:
        """Store a fact, which stays for good, with `metadata`, in which even `content` is a free key."""
        return await self.store(owner, content, MemoryType.FACT, metadata)

    async def remember_conversation(self, owner: str, content: str, /, **metadata: Json) -> Memory:
        """Store a piece of conversation, which stays for thirty days, with `metadata`."""
        return await self.store(owner, content, MemoryType.CONVERSATION, metadata)

    async def set_context(self, owner: str, session: str, key: str, value: str) -> Memory:
        """Keep `value` under `key` for this session, to the end of the day, in place of an older one."""
        (stored,) = await self._remember([Item(text=value, key=key)], Scope(user=owner, session=session))
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
        now, entries = self.clock.now(), [memory for record in rows if (memory := memory_of(record))]
        living = [one for one in entries if is_context_entry(owner, one) and self._is_seen(one, now, session)]
        return max(living, key=lambda one: (one.created_at, one.id), default=None)

    async def put(self, owner: str, memories: Sequence[Memory]) -> Sequence[StoredMemory]:
        """Write memories in place of those of the same ids; a fact never takes the place of a different one.

        A fact that is known under whatever id is said again: it keeps its metadata beside what comes with it now.
        """
        memories = [self._redact(memory) for memory in memories]
        for memory in memories:
            self.tombstones.refuse(owner, memory.content)
        if not memories:
            return []
        vectors = await self.embedder.embed([one.content for one in memories], Purpose.DOCUMENT)
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

    async def search_memories(
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
    ) -> Sequence[SearchResult]:
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
        (vector,) = await self.embedder.embed([query], Purpose.QUERY)
        index, now = await self._index(owner), self.clock.now()
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

    async def memories(
        self,
        owner: str,
        types: Sequence[MemoryType] = (),
        *,
        session: str | None = None,
        limit: int | None = None,
        across: bool = False,
    ) -> Sequence[Memory]:
        """Return living memories, oldest first; of a `session` as `search` does."""
        checked_session(session)
        limit = None if limit is None else checked_count(limit, "limit", high=MOST_LISTED)
        now, rows = self.clock.now(), await self._readable(owner)
        living = [one for one in rows if self._is_seen(one, now, session, across=across)]
        living = [one for one in living if not types or one.memory_type in types]
        return sorted(living, key=lambda memory: (memory.created_at, memory.id))[:limit]

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        """Store several memories with one embedding call, all of them or none."""
        stored = await self._remember(items, scope)
        return Receipt(items=[_receipt_item(one.memory, one.outcome) for one in stored])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        await self.put(scope.user, read_rows(rows, _memory_of_row))
        return ()

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        memory = await self._named(ref, scope)
        return _hit_of(memory) if memory else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        types = _types_of(query.kinds)
        if len(types) > 1:
            raise InputError("a search is of one type or of all; name one kind, or none")
        found = await self.search_memories(
            scope.user,
            query.text,
            memory_type=types[0] if types else None,
            limit=query.top_k,
            min_score=query.min_score,
            where=query.where,
            session=scope.session,
        )
        return [_hit_of(one.memory, one.score) for one in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        found = await self.memories(scope.user, _types_of(kinds), session=scope.session, limit=limit)
        return [_hit_of(memory) for memory in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        """Replace content (and metadata, if there are any) of a living memory.

        A fact that says then what another one says takes that one in.
        """
        owner = scope.user
        encode_metadata(item.metadata)
        content, metadata = self.settings.admit_with(checked_memory(item.text, self.settings.limits), item.metadata)
        old = await self._named(ref, scope)
        if old is None:
            raise _unknown(ref)
        self.tombstones.refuse(owner, content)
        (vector,) = await self.embedder.embed([content], Purpose.DOCUMENT)
        async with self._alone(owner):
            old = await self._living(owner, old.id)
            if old is None:
                raise _unknown(ref)
            index = await self._index(owner)
            new = replace(old, content=content, metadata=keep_bindings(old, metadata) if metadata else old.metadata)
            await self._learn_facts(index, owner)
            rows = map(memory_of, await index.get(self._facts.ids(owner, new)))
            twin = same_fact(new, [one for one in rows if one and one.id != new.id])
            if twin:
                new = replace(new, metadata={**twin.metadata, **new.metadata})
            await self._write(index, owner, [record_of(new, vector)])
            await index.delete([twin.id] if twin else [])
        return Receipt(items=[_receipt_item(new, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        """Delete one memory, `durable` for good: nothing that tells it again is stored.

        False where the owner has none of that name, or only one that has expired.
        """
        if ref.id is None and ref.key is None:
            return bool(await self._forget_all(scope, durable=ref.durable))
        async with self._alone(scope.user):
            memory = await self._named(ref, scope)
            if memory is None:
                return False
            if ref.durable:
                self.tombstones.bury(scope.user, [memory.content])
            return bool(await (await self._index(scope.user)).delete([memory.id]))

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        return [_hit_of(one) for one in await self._with_repeats(scope.user, memory_id)]

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        return ForgetResult(gone=[_hit_of(one) for one in await self.forget_saying(scope.user, memory_id)])

    async def forget_saying(self, owner: str, memory_id: str) -> Sequence[Memory]:
        """Delete one memory and the turns that repeat it, so that no search tells it again; return them."""
        whose = Scope(user=owner)
        return [one for one in await self._with_repeats(owner, memory_id) if await self.delete(Ref(id=one.id), whose)]

    async def cleanup_expired(self) -> int:
        """Delete what is expired, of every owner; return how many memories that were."""
        now = self.clock.now()
        # Of a shared store nobody hears of every write.
        due = [one for one in await self.owners() if self.vectors.is_shared or self._deadlines.is_due(one, now)]
        return sum([await self._cleanup(owner, now) for owner in due])

    async def count(self, owner: str, memory_type: MemoryType | None = None) -> int:
        """Count rows, expired ones that await cleanup too."""
        return await (await self._index(owner)).count(conditions_of(None, memory_type))

    async def unreadable(self, owner: str) -> int:
        """Count the owner's rows that are damaged."""
        return await self.count(owner) - len(await self._readable(owner))

    async def _look_status(self, scope: Scope) -> Tree:
        return {
            "rows": await self.count(scope.user),
            **{str(kind): await self.count(scope.user, kind) for kind in MemoryType},
            "unreadable": await self.unreadable(scope.user),
            "embedder": self.embedder.model,
        }

    async def _remember(self, items: Sequence[Item], scope: Scope) -> Sequence[StoredMemory]:
        checked_owner(scope.user)
        now, limits = self.clock.now().astimezone(UTC), self.settings.limits
        memories = [make_memory(self._with_plain_key(one), scope, now, self.new_id, limits) for one in items]
        return await self.put(scope.user, memories)

    async def _named(self, ref: Ref, scope: Scope) -> Memory | None:
        """Return the living memory that is meant, by its id or by the key of a context."""
        if ref.id is not None:
            memory = await self._living(scope.user, ref.id)
        elif ref.key is not None:
            memory = await self.context_entry(scope.user, scope.session, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        is_meant = ref.kind is None or (memory is not None and memory.memory_type in _types_of([ref.kind]))
        return memory if is_meant else None

    async def _living(self, owner: str, memory_id: str) -> Memory | None:
        records = await (await self._index(owner)).get([self._id(memory_id)])
        memory = memory_of(records[0]) if records else None
        return memory if memory and self._is_seen(memory, self.clock.now(), None) else None

    async def _with_repeats(self, owner: str, memory_id: str) -> Sequence[Memory]:
        """Return a living memory and the turns that repeat what it states; none where the owner has none of that id."""
        memory = await self._living(owner, memory_id)
        turns = [MemoryType.CONVERSATION]
        return [memory, *repeating_turns(memory, await self.memories(owner, turns))] if memory else []

    async def _forget_all(self, scope: Scope, *, durable: bool) -> int:
        """Delete everything of an owner, or what one session left; return how many memories there were."""
        index, deleted = await self._index(scope.user), 0
        checked_session(scope.session)
        where = None if scope.session is None else {SESSION_ID: scope.session}
        async with self._alone(scope.user):
            while rows := await index.list(where, PAGE):
                if durable:
                    self.tombstones.bury(scope.user, [record.text for record in rows])
                deleted += len(await index.delete([record.id for record in rows]))
        return deleted

    async def _cleanup(self, owner: str, now: datetime) -> int:
        self._deadlines.begin(owner)
        try:
            # Of its own store it reads all, to know the facts; of a shared one what can expire.
            types = (MemoryType.CONVERSATION, MemoryType.CONTEXT) if self.vectors.is_shared else (None,)
            index, memories = await self._index(owner), [m for one in types for m in await self._readable(owner, one)]
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

    async def _readable(self, owner: str, memory_type: MemoryType | None = None) -> Sequence[Memory]:
        index, memories, offset = await self._index(owner), list[Memory](), 0
        while rows := await index.list(conditions_of(None, memory_type), PAGE, offset):
            memories += [memory for record in rows if (memory := memory_of(record)) is not None]
            offset += len(rows)
        if lost := offset - len(memories):
            LOG.warning("%d rows are not memories that can be read, and were left alone", lost)
        return memories

    async def _learn_facts(self, index: VectorIndex, owner: str) -> None:
        """Learn which facts another process has changed."""
        if self.vectors.is_shared:
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
            return StoredMemory(memory=replace(memory, id=self.new_id()), is_known=False)
        return StoredMemory(memory=memory, is_known=is_taken)

    def _with_plain_key(self, item: Item) -> Item:
        """Return an item whose key holds no secret of its text; what has other types is refused later."""
        if not (isinstance(item.key, str) and isinstance(item.text, str)):
            return item
        return replace(item, key=self.settings.admit_key(item.key, item.text))

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


def _types_of(kinds: Iterable[str]) -> Sequence[MemoryType]:
    """Return the types that are meant; an unknown one is refused."""
    return [memory_type_of(kind) for kind in kinds]


def _unknown(ref: Ref) -> Refused:
    return Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")


def _receipt_item(memory: Memory, outcome: str) -> ReceiptItem:
    """Return what happened to one item."""
    return ReceiptItem(
        id=memory.id,
        text=memory.content,
        outcome=outcome,
        reason=left_out(memory.content),
        kind=memory.memory_type.value,
        key=_key_of(memory),
    )


def _hit_of(memory: Memory, score: float | None = None) -> Hit:
    """Return a memory; one that was looked up or listed has no score."""
    return Hit(
        id=memory.id,
        text=memory.content,
        score=score,
        kind=memory.memory_type.value,
        key=_key_of(memory),
        created_at=memory.created_at.isoformat(),
        metadata=memory.metadata,
    )


def _memory_of_row(row: Mapping[str, Tree]) -> Memory:
    """Return the memory of an exported row, with its id and its moment."""
    return Memory(
        id=str(row["id"]),
        content=str(row["text"]),
        memory_type=memory_type_of(row["kind"]),
        created_at=stored_moment(row["created_at"]),
        metadata=dict(row.get("metadata") or {}),
    )


def _key_of(memory: Memory) -> str | None:
    """Return the key of a context entry; a fact that carries the same metadata has none."""
    key: Tree = memory.metadata.get(CONTEXT_KEY)
    return key if memory.memory_type is MemoryType.CONTEXT else None
