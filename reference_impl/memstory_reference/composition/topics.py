"""The topics memory, joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.bus import Bus, InProcessBus
from memstory_reference.composition.declaration import IN_CHROMA, MemoryPorts, MemorySystem, closing_on_failure
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.storage.tombstones import FILE, NoTombstones, Tombstones
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings

S = TypeVar("S", bound=MemoryService)


async def open_topics(settings: TopicsSettings, ports: MemoryPorts, bus: Bus | None = None) -> TopicsMemory:
    """Open the topics memory with its agent, on a bus of its own unless one is given."""
    memory = await _open(settings, ports, partial(TopicsMemory, chat=ports.chat, bus=bus or InProcessBus()))
    async with closing_on_failure(memory.close):
        await memory.open()
    return memory


async def open_topics_service(settings: TopicsSettings, ports: MemoryPorts) -> MemoryService:
    """Open the memory alone."""
    return await _open(settings, ports, MemoryService)


async def _open(settings: TopicsSettings, ports: MemoryPorts, make: Callable[..., S]) -> S:
    """Open what `make` makes; where no setting says how near is near enough, the embedding model does."""
    place = ports.place_of(settings)
    folder, server, embedder = settings.folder, settings.chroma_server, ports.embedder
    if settings.min_score is None:
        settings = replace(settings, min_score=embedder.profile.min_score)
    store = await open_store(folder, embedder, engine=settings.store, server=server, place=place)
    async with closing_on_failure(store.close):
        return make(
            settings=settings,
            store=ports.wrap(store),
            embedder=embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=NoTombstones() if place or server else Tombstones(folder / FILE),
            engine=ports.store_name(settings),
        )


TOPICS = MemorySystem(
    name="topics",
    kind=TopicsSettings,
    memory=TopicsMemory,
    opener=open_topics,
    files=[EMBEDDED_FILE],
    earlier=IN_CHROMA,
    derived=INDEXES,
    owner="me",
)
