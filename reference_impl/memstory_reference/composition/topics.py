"""The topics memory, joined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.composition.declaration import IN_CHROMA, MemoryPorts, MemorySystem, opening
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings

if TYPE_CHECKING:
    from memstory_reference.bus import Bus


async def open_topics(settings: TopicsSettings, ports: MemoryPorts, bus: Bus | None = None) -> TopicsMemory:
    """Open the topics memory with its agent, on a bus of its own unless one is given."""
    async with opening() as opened:
        service = await open_topics_service(settings, ports)
        opened.push_async_callback(service.close)
        engine = ports.store_name(settings)
        memory = TopicsMemory(service, chat=ports.chat, new_id=ports.new_id, bus=bus, engine=engine)
        opened.push_async_callback(memory.close)
        await memory.open()
        return memory


async def open_topics_service(settings: TopicsSettings, ports: MemoryPorts) -> MemoryService:
    """Open the memory alone; where no setting says how near is near enough, the embedding model does."""
    place = ports.place_of(settings)
    folder, server, embedder = settings.folder, settings.chroma_server, ports.embedder
    if settings.min_score is None:
        settings = replace(settings, min_score=embedder.profile.min_score)
    async with opening() as opened:
        store = await open_store(folder, embedder, engine=settings.store, server=server, place=place)
        opened.push_async_callback(store.close)
        return MemoryService(
            settings=settings,
            store=ports.wrap(store),
            embedder=embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=ports.tombstones(settings, opened),
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
