"""The topics memory, joined."""

from __future__ import annotations

from functools import partial

from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.bus import Bus, InProcessBus
from memstory_reference.composition.declaration import IN_CHROMA, MemoryPorts, MemorySystem, open_on_vectors, opening
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings


async def open_topics(settings: TopicsSettings, ports: MemoryPorts, bus: Bus | None = None) -> TopicsMemory:
    """Open the topics memory with its agent, on a bus of its own unless one is given."""
    make = partial(TopicsMemory, chat=ports.chat, bus=bus or InProcessBus())
    memory = await open_on_vectors(settings, ports, make, settings.chroma_server)
    async with opening() as opened:
        opened.push_async_callback(memory.close)
        await memory.open()
        return memory


async def open_topics_service(settings: TopicsSettings, ports: MemoryPorts) -> MemoryService:
    """Open the memory alone."""
    return await open_on_vectors(settings, ports, MemoryService, settings.chroma_server)


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
