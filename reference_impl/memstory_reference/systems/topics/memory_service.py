"""The memory itself: topics by exact key, engrams by meaning, each owner's apart from all others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope, Tree
from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    checked_choice,
    checked_count,
    checked_mapping,
    checked_memory,
    checked_number,
    checked_owner,
    checked_query,
    checked_text,
)
from memstory_reference.ports import Match, Primitive, Purpose, Record, VectorIndex
from memstory_reference.system_memory import ForgetResult, read_rows
from memstory_reference.systems.topics.entries import (
    CANDIDATES,
    EPISODIC,
    RESERVED,
    REWARD_WEIGHT,
    SINCE,
    TOPIC,
    TOPICS,
    all_words,
    check_metadata,
    clamped_reward,
    find_forgotten,
    found_hit,
    hit_of,
    is_settled,
    kind_of,
    lookup_key,
    name_of,
    newer_about,
    rank_engrams,
    since_of,
    statements_in,
    time_of,
    timestamp,
    topic_id,
    topic_key,
)
from memstory_reference.systems.topics.result_texts import NO_MEMORIES, engrams_text, topic_text
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.text.secret_guard import left_out
from memstory_reference.vector_memory import VectorMemory

KINDS = (TOPIC, EPISODIC)
MOST_SINCE = 3
REWARDED = "rewarded"
"""Marks engrams with a reward above 0, so that they are found among any number of nearer ones."""

_MAX_DAYS = 365_000


@dataclass(kw_only=True, eq=False)
class MemoryService(VectorMemory):
    """What is remembered, shared by all tools and agents; every call names the owner whose memory it concerns.

    Writes of one owner take turns, so that of two values for a topic the later call's stays, and so that no reward is
    lost.
    """

    operations = frozenset(
        {
            "add.metadata",
            *("add", "add.key", "add.key.apart", "add.verbatim", "add.exact"),
            *("get.key", "get.id", "list", "update", "feedback"),
            *("delete", "delete.reports_missing", "delete.scope", "delete.about", "delete.durable", "update.about"),
            "delete.erases",
            "identifiers.spellings",
            *("search", "search.scores", "search.min_score", "search.where", "search.explain", "context"),
            *("scope.session", "scope.session_all", "rank.reward"),
        }
    )
    counted = ("topics", "episodic")

    settings: TopicsSettings

    @property
    def collection(self) -> str:
        return self.settings.collection

    async def write_topic(self, owner: str, topic: str, content: str) -> str:
        """Store `content` under `topic` in place of what was there; return the entry's id."""
        receipt = await self.add([Item(text=content, key=topic)], Scope(user=owner))
        return str(receipt.items[0].id)

    async def recall_topic(self, owner: str, topic: str) -> str | None:
        """Return what is stored under exactly this topic, or None; nothing is embedded."""
        found = await self.get(Ref(key=topic), Scope(user=owner))
        return found.text if found else None

    async def write_episodic(self, owner: str, content: str, metadata: Mapping[str, Json] | None = None) -> str:
        """Add an engram, never merged with another; return its id."""
        receipt = await self.add([Item(text=content, metadata=metadata or {})], Scope(user=owner))
        return str(receipt.items[0].id)

    async def search_episodic(self, owner: str, query: str, top_k: int | None = None) -> Sequence[Hit]:
        """Return the engrams that are near enough, best first."""
        return await self.search(Query(text=query, top_k=top_k), Scope(user=owner))

    async def write_turn(
        self,
        owner: str,
        content: str,
        metadata: Mapping[str, Json],
        *,
        is_recall: bool,
        topics: Sequence[str],
        saved: Sequence[str] = (),
        message_id: str | None = None,
    ) -> str:
        """Add the engram of a turn that looked something up, or not, had to do with `topics`, and `saved` some.

        A message with an id becomes one engram, however often it comes.
        """
        noted: dict[str, Primitive] = {"is_recall": True} if is_recall else {}
        if topics:
            noted[TOPICS] = " ".join(topics)
        record = self._engram(content, metadata, noted)
        known = None
        if message_id is not None:
            record = replace(record, id=_engram_id(owner, message_id))
            known = await self._record(owner, record.id)
        if known is None:
            await self._embed_and_store(checked_owner(owner), [record])
        await self._note_since(owner, [known or record], saved)
        return record.id

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        """Store facts and engrams with one embedding call; if one is refused, none is stored.

        Of two facts for one topic the last stays.
        """
        return await self._store([self._new_record(item, scope) for item in items], scope)

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        owner = Scope(user=scope.user)
        await self._store(read_rows(rows, lambda row: self._new_record(_item_of_row(row), owner)), owner)
        return ()

    async def _store(self, records: Sequence[Record], scope: Scope) -> Receipt:
        topics = [one for one in records if kind_of(one) == TOPIC]
        known = set[str]()
        async with self._alone(scope.user) if topics else nullcontext():
            if topics:
                index = await self._index(scope.user)
                known = {one.id for one in await index.get(list({one.id for one in topics}))}
            await self._embed_and_store(checked_owner(scope.user), records)
        engrams = [one for one in records if kind_of(one) == EPISODIC]
        await self._note_since(scope.user, engrams, [*map(name_of, topics)])
        return Receipt(items=[_receipt(one, is_known=one.id in known) for one in records])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        record = await self._named(ref, scope)
        return hit_of(record) if record else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        """Return engrams at or above `min_score`, best first; `where` asks for exact values of metadata."""
        self._check_query(query)
        if _checked_kinds(query.kinds or [EPISODIC]) != {EPISODIC}:
            raise InputError("only the kind 'episodic' is found by meaning; look a topic up by its exact key")
        text = checked_query(query.text, self.settings.limits)
        wanted = checked_count(self.settings.top_k if query.top_k is None else query.top_k, "top_k", 1)
        floor = self.settings.min_score if query.min_score is None else query.min_score
        threshold = checked_number(floor, "min_score", -1, 1)
        index = await self._index(scope.user)
        (vector,) = await self.embedder.embed([text], Purpose.QUERY)
        condition = {**check_metadata(query.where), **check_metadata(_where(scope)), "type": EPISODIC}
        plain = await self.nearest(index, vector, wanted, condition, threshold)
        praised = await self.nearest(index, vector, wanted, {**condition, REWARDED: True}, threshold)
        every = {one.record.id: one for one in (*plain, *praised)}
        return [*map(found_hit, rank_engrams(list(every.values()), top_k=wanted, min_score=threshold))]

    async def context(self, query: Query, scope: Scope) -> str:
        """Return a topic by its exact key where only topics are asked for, else what a search finds."""
        if query.kinds and _checked_kinds(query.kinds) == {TOPIC}:
            return await self._topic_context(query.text, scope)
        return engrams_text(await self.search(query, scope), self.clock.now().date())

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        """Return topics by name, then engrams, oldest first."""
        wanted, index = _checked_kinds(kinds), await self._index(scope.user)
        topics = await index.list({"type": TOPIC}) if TOPIC in wanted else []
        engrams = await self._engrams(scope.user, _where(scope)) if EPISODIC in wanted else []
        return [*map(hit_of, sorted(topics, key=name_of)), *map(hit_of, engrams)][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        """Replace what an entry says, and what callers attached to it if the item has metadata."""
        text, attached = self._content(item.text), self._attach(item.metadata)
        async with self._alone(scope.user):
            record = await self._named(ref, scope)
            if record is None:
                raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
            if attached and kind_of(record) == TOPIC:
                raise InputError("a topic takes no metadata; attach it to an engram")
            kept = {key: value for key, value in record.metadata.items() if key != SINCE}
            changed = Record(id=record.id, text=text, metadata={**kept, **attached})
            await self._embed_and_store(scope.user, [changed])
        return Receipt(items=[_receipt(changed, is_known=True)])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        async with self._alone(scope.user):
            index = await self._index(scope.user)
            if ref.id is None and ref.key is None:
                records = await index.list(check_metadata(_where(scope)) or None)
            else:
                named = await self._named(ref, scope)
                records = [named] if named else []
            if ref.durable:
                self.tombstones.bury(scope.user, [record.text for record in records])
            return bool(await index.delete([record.id for record in records]))

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        return (await self._find_forgotten(memory_id, scope.user)).gone

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        async with self._alone(scope.user):
            found = await self._find_forgotten(memory_id, scope.user)
            await (await self._index(scope.user)).delete([str(one.id) for one in found.gone])
        return found

    def full_text(self, hit: Hit) -> str:
        return all_words(hit)

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        """Attach a reward in [-1, 1] to an engram, in place of an earlier one; False if unknown."""
        reward = clamped_reward(value)
        async with self._alone(scope.user):
            record = await self._named(ref, scope)
            if record is None:
                return False
            if kind_of(record) == TOPIC:
                raise InputError("feedback belongs to an engram, never to a topic; name the id of an engram")
            # A row without a vector keeps the one that it has: rating embeds nothing.
            rated = {**record.metadata, "reward": reward, REWARDED: True if reward > 0 else None}
            await (await self._index(scope.user)).upsert([Record(id=record.id, text=record.text, metadata=rated)])
        return True

    async def rate_turn(self, owner: str, query_id: str, value: float) -> bool:
        """Reward the engram of the turn that answered a query; False if there is none."""
        turns = await self._engrams(owner, {"query_id": self._text(query_id, "query_id")})
        return bool(turns) and await self.feedback(Ref(id=turns[-1].id), value, Scope(user=owner))

    async def purge(self, owner: str, older_than_days: float | None = None) -> int:
        """Delete engrams older than the retention; topics stay. Return how many went."""
        days = self.settings.retention_days if older_than_days is None else older_than_days
        if days is None:
            raise InputError("purge: no retention_days are set, so nothing is too old; say how many days")
        limit = self.oldest_kept(days)
        async with self._alone(owner):
            old = [one.id for one in await self._engrams(owner) if time_of(one) < limit]
            return len(await (await self._index(owner)).delete(old))

    async def purge_all(self) -> int:
        """Delete every owner's engrams that are older than the retention; return how many went."""
        return sum([await self.purge(owner) for owner in await self.owners()])

    async def count(self, owner: str, kind: str) -> int:
        """Count the owner's topics or engrams."""
        return await (await self._index(owner)).count({"type": kind})

    async def _job_purge(self, scope: Scope, *, older_than_days: Tree = None) -> Tree:
        return {"deleted": await self.purge(scope.user, older_than_days)}

    async def _look_feedback(self, scope: Scope) -> Tree:
        """Return the turns that were rated, with their rewards."""
        rated = [hit for hit in await self.list(scope, [EPISODIC]) if hit.metadata.get("reward") is not None]
        return [
            {"at": hit.created_at, "id": hit.id, "value": hit.metadata["reward"], "text": hit.text} for hit in rated
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        """Return counts of this owner's memories; no content."""
        topics, engrams = await self.count(scope.user, TOPIC), await self.count(scope.user, EPISODIC)
        return {
            "topics": topics,
            "episodic": engrams,
            "unreadable": await (await self._index(scope.user)).count() - topics - engrams,
            "embedder": self.embedder.model,
        }

    def _new_record(self, item: Item, scope: Scope) -> Record:
        """Return a standing fact for an item with a key, else an engram, of the scope's session unless it names one."""
        if item.kind is not None and (_checked_kinds([item.kind]) == {TOPIC}) == (item.key is None):
            raise InputError("a topic has a key, an engram has none")
        if item.key is None:
            return self._engram(item.text, {**_where(scope), **checked_mapping(item.metadata, "metadata")})
        if item.metadata:
            raise InputError("a topic takes no metadata; attach it to an engram")
        key = topic_key(self._text(item.key, "topic"), strict=self.settings.strict_topics)
        key = self.settings.admit_key(key, item.text)
        metadata = {"type": TOPIC, "topic": key, "timestamp_utc": timestamp(self.clock.now())}
        return Record(id=topic_id(scope.user, key), text=self._content(item.text), metadata=metadata)

    def _engram(
        self, content: str, metadata: Mapping[str, Json], noted: Mapping[str, Primitive] | None = None
    ) -> Record:
        # What the memory writes comes last: nothing that a caller attaches can turn an engram into a topic.
        attached = {"timestamp_utc": timestamp(self.clock.now()), **self._attach(metadata), "type": EPISODIC}
        return Record(id=self.new_id(), text=self._content(content), metadata={**attached, **(noted or {})})

    def _content(self, content: object) -> str:
        (text,) = self.settings.admit(checked_memory(content, self.settings.limits))
        return text

    def _attach(self, metadata: object) -> dict[str, Primitive]:
        return check_metadata(self.settings.admit_with("", check_metadata(metadata))[1])

    def _text(self, value: object, what: str) -> str:
        return checked_text(value, what, self.settings.limits.max_query_characters)

    def oldest_kept(self, days: float | None) -> str:
        """Return the time of the oldest engrams that are kept for `days`; before all times for None."""
        if days is None:
            return ""
        return timestamp(self.clock.now() - timedelta(days=checked_number(days, "retention_days", 0, _MAX_DAYS)))

    async def nearest(
        self,
        index: VectorIndex,
        vector: NDArray[np.float32],
        wanted: int,
        where: Mapping[str, Primitive],
        threshold: float,
    ) -> Sequence[Match]:
        """Return the nearest engrams, as many as it takes for those beyond them not to matter."""
        bonus = REWARD_WEIGHT if REWARDED in where else 0.0
        size, oldest = CANDIDATES * wanted, self.oldest_kept(self.settings.retention_days)
        while True:
            every = await index.query(vector, size, where)
            # What the next purge deletes is not found any more.
            found = [one for one in every if time_of(one.record) >= oldest]
            is_all = len(every) < size or every[-1].similarity < threshold
            if is_all or (found and is_settled(found, top_k=wanted, bonus=bonus)):
                return found
            size *= CANDIDATES

    async def _topic_context(self, topic: str, scope: Scope) -> str:
        """Return a topic with what was said of it since it was saved."""
        record = await self._named(Ref(key=topic), scope)
        if record is None:
            return NO_MEMORIES
        since = await (await self._index(scope.user)).get(since_of(record))
        oldest = self.oldest_kept(self.settings.retention_days)
        return topic_text(hit_of(record), [hit_of(one) for one in since if time_of(one) >= oldest])

    async def _note_since(self, owner: str, engrams: Sequence[Record], saved: Sequence[str]) -> None:
        """Note with each topic, but those that were `saved` just now, which of the new engrams speak of it."""
        told = [(one, statements_in(one.text)) for one in reversed(engrams)]
        if not any(said for _, said in told):
            return
        async with self._alone(owner):
            index = await self._index(owner)
            changed = list[Record]()
            for row in await index.list({"type": TOPIC}):
                since = since_of(row)
                about = [] if name_of(row) in saved else newer_about(row, told)
                newer = [one for one in about if one not in since]
                if newer:
                    noted = {**row.metadata, SINCE: " ".join([*newer, *since][:MOST_SINCE])}
                    changed.append(replace(row, metadata=noted))
            await index.upsert(changed)

    async def _find_forgotten(self, memory_id: str, owner: str) -> ForgetResult:
        """Return an entry with every engram that holds what it says; nothing where it is unknown."""
        entry = await self._named(Ref(id=memory_id), Scope(user=owner))
        if entry is None:
            return ForgetResult(gone=())
        topics = await (await self._index(owner)).list({"type": TOPIC})
        return find_forgotten(entry, await self._engrams(owner), sorted(topics, key=name_of))

    async def _named(self, ref: Ref, scope: Scope) -> Record | None:
        """Return the row of an id, or of exactly this topic, if it can be read; nothing is embedded."""
        record = None
        if ref.id is not None:
            record = await self._record(scope.user, self._text(ref.id, "id"))
        elif ref.key is None:
            raise InputError("name one memory, by id or by key")
        elif key := lookup_key(self._text(ref.key, "topic")):
            record = await self._record(scope.user, topic_id(scope.user, key))
            record = record if record and record.metadata.get("topic") == key else None
        kinds = _checked_kinds([ref.kind] if ref.kind else [])
        return record if record and record.metadata and kind_of(record) in kinds else None

    async def _engrams(self, owner: str, where: Mapping[str, Json] | None = None) -> Sequence[Record]:
        """Return the owner's engrams, oldest first."""
        rows = await (await self._index(owner)).list({**check_metadata(where), "type": EPISODIC})
        return sorted(rows, key=lambda row: (time_of(row), row.id))

    async def _record(self, owner: str, entry_id: str) -> Record | None:
        return next(iter(await (await self._index(owner)).get([entry_id])), None)

    async def _embed_and_store(self, owner: str, records: Sequence[Record]) -> None:
        # Of two rows with one id the last stays, whatever a store makes of them in one batch.
        if not (records := [*{record.id: record for record in records}.values()]):
            return
        self.tombstones.refuse(owner, *(record.text for record in records))
        vectors = await self.embedder.embed([record.text for record in records], Purpose.DOCUMENT)
        index = await self._index(owner)
        await index.upsert([replace(one, vector=vector) for one, vector in zip(records, vectors, strict=True)])


def _receipt(record: Record, *, is_known: bool) -> ReceiptItem:
    """Return what happened to an item; a topic that was known has a new value."""
    return ReceiptItem(
        id=record.id,
        text=record.text,
        outcome="updated" if is_known else "stored",
        reason=left_out(record.text),
        kind=kind_of(record),
        key=hit_of(record).key,
    )


def _item_of_row(row: Mapping[str, Tree]) -> Item:
    """Return the fact or the engram of an exported row; ids and ratings are new."""
    if row.get("key") is not None:
        return Item(text=row["text"], key=str(row["key"]))
    attached = {name: value for name, value in (row.get("metadata") or {}).items() if name not in RESERVED}
    moment = {} if row.get("created_at") is None else {"timestamp_utc": row["created_at"]}
    return Item(text=row["text"], metadata={**attached, **moment})


def _checked_kinds(kinds: Iterable[str]) -> frozenset[str]:
    """Return the kinds that are meant, all for none; an unknown one is refused."""
    return frozenset(checked_choice(kind, "kind", KINDS) for kind in kinds) or frozenset(KINDS)


def _where(scope: Scope) -> dict[str, Tree]:
    """Return the filter of a scope: one session's engrams, where the scope names a session."""
    return {"session_id": scope.session} if scope.session else {}


def _engram_id(owner: str, message_id: str) -> str:
    return blake2b(json.dumps([owner, message_id]).encode(), digest_size=16).hexdigest()
