"""The memory itself: topics by exact key, engrams by meaning, each owner's apart from all others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from hashlib import blake2b
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from memstory_reference.ports import (
    Embedder,
    NewId,
    Primitive,
    Purpose,
    Record,
    VectorIndex,
    VectorStore,
)
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.topics.engrams import (
    CANDIDATES,
    REWARD_WEIGHT,
    EngramEntry,
    FoundEngram,
    TopicEntry,
    engram_entry,
    found_engram,
    is_settled,
    newer_about,
    rank_engrams,
    statements_in,
    topic_entry,
)
from memstory_reference.systems.topics.forgetting import TOPICS, ForgottenEntry, find_forgotten
from memstory_reference.systems.topics.inputs import check_metadata, clamped_reward, timestamp
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.topics.topic_keys import is_under, lookup_key, topic_id, topic_key


class NewEntry(NamedTuple):
    """A fact under a topic, or an engram with what the caller attaches to it."""

    content: str
    topic: str | None = None
    metadata: Mapping[str, Json] | None = None


TOPIC: Literal["topic"] = "topic"
EPISODIC: Literal["episodic"] = "episodic"
SINCE = "since"
"""Metadata of a topic: the ids of the newest engrams that spoke of it after it was saved, parted by blanks."""

MOST_SINCE = 3
REWARDED = "rewarded"
"""Marks engrams with a reward above 0, so that they are found among any number of nearer ones."""


class MemoryService:
    """One memory, shared by all tools and agents; every call names the owner whose memory it concerns.

    Writes of one owner take turns, so that of two values for a topic the later call's stays, and so that no reward is
    lost. Callers pass raw text: the embedder's profile adds prefixes.
    """

    def __init__(
        self,
        *,
        settings: TopicsSettings,
        store: VectorStore,
        embedder: Embedder,
        clock: Clock,
        new_id: NewId,
        tombstones: Tombstones | None = None,
    ) -> None:
        self.settings = settings
        self._tombstones = tombstones or NoTombstones()
        self._store = store
        self.embedder = CheckedEmbedder(embedder)
        self.clock = clock
        self._new_id = new_id

    async def write_topic(self, owner: str, topic: str, content: str) -> str:
        """Store `content` under `topic` in place of what was there; return the entry's id."""
        (entry_id,) = await self.write(owner, [NewEntry(content, topic)])
        return entry_id

    async def recall_topic(self, owner: str, topic: str) -> str | None:
        """Return what is stored under exactly this topic, or None; nothing is embedded."""
        entry = await self.topic_entry(owner, topic)
        return entry.content if entry else None

    async def topic_entry(self, owner: str, topic: str) -> TopicEntry | None:
        """Return the entry of exactly this topic, or None; nothing is embedded."""
        key = lookup_key(self._text(topic, "topic"))
        if key is None:
            return None
        record = await self._record(owner, topic_id(owner, key))
        return await self._whole(owner, record) if record and record.metadata.get("topic") == key else None

    async def write_episodic(self, owner: str, content: str, metadata: Mapping[str, Json] | None = None) -> str:
        """Add an engram, never merged with another; return its id."""
        (entry_id,) = await self.write(owner, [NewEntry(content, metadata=metadata)])
        return entry_id

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
        record = self._engram_record(content, metadata, noted)
        known = None
        if message_id is not None:
            record = replace(record, id=_engram_id(owner, message_id))
            known = await self._record(owner, record.id)
        if known is None:
            await self._embed_and_store(checked_owner(owner), [record])
        await self._note_since(owner, [known or record], saved)
        return record.id

    async def write(self, owner: str, entries: Sequence[NewEntry]) -> list[str]:
        """Store facts and engrams with one embedding call; if one is refused, none is stored. Return their ids.

        Of two facts for one topic the last stays.
        """
        records = [
            self._engram_record(content, metadata)
            if topic is None
            else self._topic_record(owner, topic, content, metadata)
            for content, topic, metadata in entries
        ]
        saved = [str(record.metadata["topic"]) for record in records if record.metadata["type"] == TOPIC]
        async with self._turn(owner) if saved else nullcontext():
            await self._embed_and_store(checked_owner(owner), records)
        await self._note_since(owner, [one for one in records if one.metadata["type"] == EPISODIC], saved)
        return [record.id for record in records]

    async def search_episodic(
        self,
        owner: str,
        query: str,
        top_k: int | None = None,
        *,
        min_score: float | None = None,
        where: Mapping[str, Primitive] | None = None,
    ) -> list[FoundEngram]:
        """Return engrams at or above `min_score`, best first; `where` asks for exact values of metadata."""
        text = checked_query(query, self.settings.limits)
        wanted = checked_count(self.settings.top_k if top_k is None else top_k, "top_k", 1)
        threshold = checked_number(self.settings.min_score if min_score is None else min_score, "min_score", -1, 1)
        index = await self._index(owner)
        (vector,) = await self.embedder.embed([text], Purpose.QUERY)
        condition = {**check_metadata(where), "type": EPISODIC}
        plain = await self.nearest(index, vector, wanted, condition, threshold)
        praised = await self.nearest(index, vector, wanted, {**condition, REWARDED: True}, threshold)
        every = {one.id: one for one in (*plain, *praised)}
        return rank_engrams(list(every.values()), top_k=wanted, min_score=threshold)

    async def list_topics(self, owner: str, prefix: str = "") -> list[TopicEntry]:
        """Return the owner's topics by name, those under `prefix` only."""
        if not isinstance(prefix, str):
            raise InputError(f"prefix must be text, not {type(prefix).__name__}")
        index = await self._index(owner)
        entries = [topic_entry(record) for record in await index.list({"type": TOPIC})]
        return sorted((entry for entry in entries if is_under(entry.topic, prefix)), key=lambda entry: entry.topic)

    async def list_engrams(self, owner: str, where: Mapping[str, Primitive] | None = None) -> list[EngramEntry]:
        """Return the owner's engrams, oldest first."""
        index = await self._index(owner)
        records = await index.list({**check_metadata(where), "type": EPISODIC})
        return sorted(map(engram_entry, records), key=lambda entry: (entry.time, entry.id))

    async def entry(self, owner: str, entry_id: str) -> TopicEntry | EngramEntry | None:
        """Return whatever of this owner's has this id and can be read, or None."""
        record = await self._record(owner, self._text(entry_id, "id"))
        if record is None:
            return None
        if record.metadata.get("type") == TOPIC:
            return await self._whole(owner, record)
        return engram_entry(record) if record.metadata else None

    async def rewrite(
        self, owner: str, entry_id: str, content: str, metadata: Mapping[str, Json] | None = None
    ) -> bool:
        """Replace what an entry says, and what callers attached to it if `metadata` is given; False if unknown."""
        text, attached = self._content(content), self._attach(metadata)
        async with self._turn(owner):
            record = await self._record(owner, self._text(entry_id, "id"))
            if record is None:
                return False
            if attached and record.metadata.get("type") == TOPIC:
                raise InputError("a topic takes no metadata; attach it to an engram")
            known = {key: value for key, value in record.metadata.items() if key != SINCE}
            await self._embed_and_store(owner, [Record(id=record.id, text=text, metadata={**known, **attached})])
        return True

    async def reward(self, owner: str, engram_id: str, value: float) -> bool:
        """Attach a reward in [-1, 1] to an engram, in place of an earlier one; False if unknown."""
        reward = clamped_reward(value)
        async with self._turn(owner):
            record = await self._record(owner, self._text(engram_id, "id"))
            if record is None:
                return False
            if record.metadata.get("type") != EPISODIC:
                raise InputError("feedback belongs to an engram, never to a topic; name the id of an engram")
            index = await self._index(owner)
            # A row without a vector keeps the one that it has: rating embeds nothing.
            rated = {**record.metadata, "reward": reward, REWARDED: True if reward > 0 else None}
            await index.upsert([Record(id=record.id, text=record.text, metadata=rated)])
        return True

    async def find_repeats(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        """Return what `forget_repeats` would delete; nothing is."""
        entry = await self.entry(owner, entry_id)
        return find_forgotten(entry, await self.list_engrams(owner), await self.list_topics(owner)) if entry else None

    async def forget_repeats(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        """Delete an entry and every engram that holds what it says; None if unknown."""
        async with self._turn(owner):
            found = await self.find_repeats(owner, entry_id)
            if found is not None:
                await (await self._index(owner)).delete([one.id for one in found.gone])
        return found

    async def rate_turn(self, owner: str, query_id: str, value: float) -> bool:
        """Reward the engram of the turn that answered a query; False if there is none."""
        turns = await self.list_engrams(owner, {"query_id": self._text(query_id, "query_id")})
        return bool(turns) and await self.reward(owner, turns[-1].id, value)

    async def forget(self, owner: str, entry_id: str, *, durable: bool = False) -> bool:
        """Delete an entry of this owner's, `durable` for good: what tells it again is refused. False if unknown."""
        async with self._turn(owner):
            record = await self._record(owner, self._text(entry_id, "id"))
            if durable and record:
                self._tombstones.bury(owner, [record.text])
            return bool(await (await self._index(owner)).delete([entry_id]))

    async def forget_all(
        self, owner: str, where: Mapping[str, Primitive] | None = None, *, durable: bool = False
    ) -> int:
        """Delete everything of this owner's that has these values of metadata; return how much it was."""
        async with self._turn(owner):
            index = await self._index(owner)
            records = await index.list(check_metadata(where) or None)
            if durable:
                self._tombstones.bury(owner, [record.text for record in records])
            return len(await index.delete([record.id for record in records]))

    async def purge(self, owner: str, older_than_days: float | None = None) -> int:
        """Delete engrams older than the retention; topics stay. Return how many went."""
        days = self.settings.retention_days if older_than_days is None else older_than_days
        if days is None:
            raise InputError("purge: no retention_days are set, so nothing is too old; say how many days")
        limit = self.oldest_kept(days)
        async with self._turn(owner):
            old = [one.id for one in await self.list_engrams(owner) if one.time < limit]
            return len(await (await self._index(owner)).delete(old))

    async def purge_all(self) -> int:
        """Delete every owner's engrams that are older than the retention; return how many went."""
        return sum([await self.purge(owner) for owner in await self.owners()])

    async def close(self) -> None:
        """Release the store."""
        self._tombstones.close()
        await self._store.close()

    async def owners(self) -> Sequence[str]:
        """Return who has memories here."""
        return await self._store.owners(self.settings.collection)

    async def unreadable(self, owner: str) -> int:
        """Count the owner's rows that are damaged: neither topics nor engrams."""
        return await (await self._index(owner)).count() - sum((await self.counts(owner)).values())

    async def counts(self, owner: str) -> dict[str, int]:
        """Count the owner's topics and engrams, by the names that a status has for them."""
        return {"topics": await self.count(owner, TOPIC), "episodic": await self.count(owner, EPISODIC)}

    async def count(self, owner: str, kind: Literal["topic", "episodic"]) -> int:
        """Count the owner's topics or engrams."""
        return await (await self._index(owner)).count({"type": kind})

    def _topic_record(self, owner: str, topic: str, content: str, attached: Mapping[str, Json] | None) -> Record:
        if attached:
            raise InputError("a topic takes no metadata; attach it to an engram")
        key = self.settings.admit_key(
            topic_key(self._text(topic, "topic"), strict=self.settings.strict_topics), content
        )
        metadata = {"type": TOPIC, "topic": key, "timestamp_utc": timestamp(self.clock.now())}
        return Record(id=topic_id(owner, key), text=self._content(content), metadata=metadata)

    def _engram_record(
        self, content: str, metadata: Mapping[str, Json] | None, noted: Mapping[str, Primitive] | None = None
    ) -> Record:
        # What the memory writes comes last: nothing that a caller attaches can turn an engram into a topic.
        attached = {"timestamp_utc": timestamp(self.clock.now()), **self._attach(metadata), "type": EPISODIC}
        return Record(id=self._new_id(), text=self._content(content), metadata={**attached, **(noted or {})})

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
    ) -> list[FoundEngram]:
        """Return the nearest engrams, as many as it takes for those beyond them not to matter."""
        bonus = REWARD_WEIGHT if REWARDED in where else 0.0
        size, oldest = CANDIDATES * wanted, self.oldest_kept(self.settings.retention_days)
        while True:
            every = [found_engram(match) for match in await index.query(vector, size, where)]
            # What the next purge deletes is not found any more.
            found = [one for one in every if one.time >= oldest]
            is_all = len(every) < size or every[-1].score < threshold
            if is_all or (found and is_settled(found, top_k=wanted, bonus=bonus)):
                return found
            size *= CANDIDATES

    async def _whole(self, owner: str, record: Record) -> TopicEntry:
        """Return a topic with what was said of it since it was saved."""
        since = await (await self._index(owner)).get(str(record.metadata.get(SINCE, "")).split())
        oldest = self.oldest_kept(self.settings.retention_days)
        return replace(topic_entry(record), since=[one for one in map(engram_entry, since) if one.time >= oldest])

    async def _note_since(self, owner: str, engrams: Sequence[Record], saved: Sequence[str]) -> None:
        """Note with each topic, but those that were `saved` just now, which of the new engrams speak of it."""
        told = [(one, statements_in(one.text)) for one in reversed(engrams)]
        if not any(said for _, said in told):
            return
        async with self._turn(owner):
            index = await self._index(owner)
            changed = list[Record]()
            for row in await index.list({"type": TOPIC}):
                since = str(row.metadata.get(SINCE, "")).split()
                about = [] if str(row.metadata["topic"]) in saved else newer_about(row, told)
                newer = [one for one in about if one not in since]
                if newer:
                    noted = {**row.metadata, SINCE: " ".join([*newer, *since][:MOST_SINCE])}
                    changed.append(replace(row, metadata=noted))
            await index.upsert(changed)

    def _turn(self, owner: str) -> AbstractAsyncContextManager[None]:
        return self._store.alone(checked_owner(owner))

    async def _index(self, owner: str) -> VectorIndex:
        return await self._store.index(self.settings.collection, checked_owner(owner))

    async def _record(self, owner: str, entry_id: str) -> Record | None:
        return next(iter(await (await self._index(owner)).get([entry_id])), None)

    async def _embed_and_store(self, owner: str, records: Sequence[Record]) -> None:
        # Of two rows with one id the last stays, whatever a store makes of them in one batch.
        if not (records := list({record.id: record for record in records}.values())):
            return
        self._tombstones.refuse(owner, *(record.text for record in records))
        vectors = await self.embedder.embed([record.text for record in records], Purpose.DOCUMENT)
        index = await self._index(owner)
        await index.upsert([replace(one, vector=vector) for one, vector in zip(records, vectors, strict=True)])


def _engram_id(owner: str, message_id: str) -> str:
    return blake2b(json.dumps([owner, message_id]).encode(), digest_size=16).hexdigest()


_MAX_DAYS = 365_000
