"""The topics memory, joined."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial

from memstory.contract.values import ToolCall
from memstory_reference.adapters.machine import random_id
from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.bus import Bus, InProcessBus
from memstory_reference.bus.calls import Caller
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.declaration import (
    IN_CHROMA,
    MemoryPorts,
    MemorySystem,
    Part,
    ServedPart,
    open_on_vectors,
)
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.process import (
    AGENT,
    MEMORY,
    TOOLS,
    AgentPart,
    MemoryPart,
    RemoteTopicsMemory,
    ToolsPart,
)
from memstory_reference.systems.topics.settings import TopicsSettings


async def open_topics(settings: TopicsSettings, ports: MemoryPorts, bus: Bus | None = None) -> TopicsMemory:
    """Open the topics memory with its agent, on a bus of its own unless one is given."""
    make = partial(TopicsMemory, chat=ports.chat, bus=bus or InProcessBus())
    return await open_on_vectors(settings, ports, make, settings.chroma_server)


async def open_topics_service(settings: TopicsSettings, ports: MemoryPorts) -> MemoryService:
    """Open the memory alone."""
    return await open_on_vectors(settings, ports, MemoryService, settings.chroma_server)


@asynccontextmanager
async def _open_memory_part(settings: TopicsSettings, bus: Bus) -> AsyncIterator[Part]:
    service = await open_topics_service(settings, MemoryPorts(embedder=embedder_of(settings)))
    try:
        yield MemoryPart(service, bus, random_id)
    finally:
        await service.close()


def _connect(caller: Callable[[str], Caller], show_calls: Callable[[Sequence[ToolCall]], None]) -> RemoteTopicsMemory:
    return RemoteTopicsMemory(agent=caller(AGENT), memory=caller(MEMORY), show_calls=show_calls)


TOPICS = MemorySystem(
    name="topics",
    kind=TopicsSettings,
    memory=TopicsMemory,
    opener=open_topics,
    files=[EMBEDDED_FILE],
    earlier=IN_CHROMA,
    derived=INDEXES,
    owner="me",
    parts={
        MEMORY: ServedPart(opener=_open_memory_part, gives="topics"),
        TOOLS: ServedPart(
            opener=lambda settings, bus: nullcontext(ToolsPart(bus, settings=settings, new_id=random_id))
        ),
        AGENT: ServedPart(
            opener=lambda settings, bus: nullcontext(
                AgentPart(bus, chat=chat_of(settings), new_id=random_id, settings=settings)
            ),
            gives="chat",
        ),
    },
    connect=_connect,
)
