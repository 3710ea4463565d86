"""A store of the topics memory, opened by a command that looks at it or tidies it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memstory.contract.texts import did_you_mean
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS
from memstory_reference.composition.topics import memory_service, open_topics_store
from memstory_reference.composition.vector_stores import is_store
from memstory_reference.errors import InputError
from memstory_reference.ports import Embedder, VectorStore
from memstory_reference.systems.topics.anywhere import TopicsAnywhere
from memstory_reference.systems.topics.engrams import EngramEntry, TopicEntry
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings

_NAMED_OWNERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedMemory:
    """A memory and whose it is; `close` lets another process have it."""

    service: MemoryService
    store: VectorStore
    owners: Sequence[str]

    def of(self, owner: str | None) -> str:
        """Return the one owner that is meant: who was typed, or the only one there is."""
        meant = self.all_of(owner)
        if len(meant) != 1:
            raise InputError(f"{self._who()}. Choose one with --owner")
        return meant[0]

    def all_of(self, owner: str | None) -> Sequence[str]:
        """Return who was typed, else every owner; an owner that never had a memory is an InputError."""
        if owner is None:
            return self.owners
        if owner not in self.owners:
            raise InputError(f"{owner!r:.80} has no memories here; {self._who()}.{did_you_mean(owner, self.owners)}")
        return [owner]

    async def close(self) -> None:
        """Let go of the store."""
        await self.store.close()

    def _who(self) -> str:
        if not self.owners:
            return "the store holds nobody's memories yet"
        more = ", …" if len(self.owners) > _NAMED_OWNERS else ""
        return f"the store holds the memories of {', '.join(self.owners[:_NAMED_OWNERS])}{more}"


async def open_memory(settings: TopicsSettings, embedder: Embedder) -> OpenedMemory:
    """Open the store of `settings`; where there is none, InputError, and nothing is made."""
    folder = Path(settings.chroma_path)
    if settings.chroma_server is None and not is_store(folder):
        raise InputError(f"{folder}: no memory is stored here. Name its folder with --store, or make one with 'chat'")
    store = await open_topics_store(settings, embedder)
    try:
        owners = await store.owners(settings.collection)
    except BaseException:
        await store.close()
        raise
    return OpenedMemory(service=memory_service(settings, store, embedder), store=store, owners=owners)


async def entry_named(service: TopicsAnywhere, owner: str, name: str) -> TopicEntry | EngramEntry:
    """Return the entry with this topic, id or beginning of an id; InputError if there is none or more than one."""
    entry = await service.entry(owner, name) or await service.topic_entry(owner, name)
    if entry is not None:
        return entry
    is_long_enough = len(name) >= SHORT_ID_CHARACTERS
    engrams = await service.list_engrams(owner) if is_long_enough else []
    fitting = [engram for engram in engrams if engram.id.startswith(name)]
    if len(fitting) > 1:
        raise InputError(f"{name!r:.80} begins several ids: {', '.join(engram.id for engram in fitting[:3])}, …")
    if not fitting:
        topics = [topic.topic for topic in await service.list_topics(owner)]
        # The beginning of a topic is short for it, though other topics may share more letters.
        begun = [topic for topic in topics if topic.startswith(name.strip().lower())]
        near = f" Did you mean '{begun[0]}'?" if begun else did_you_mean(name.strip().lower(), topics)
        raise InputError(f"nothing is remembered under {name!r:.80}.{near}")
    return fitting[0]
