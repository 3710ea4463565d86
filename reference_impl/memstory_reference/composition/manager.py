"""The manager memory, joined."""

from __future__ import annotations

from dataclasses import replace

from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.composition.declaration import IN_CHROMA, MemoryPorts, MemorySystem, opening
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings


async def open_manager(settings: ManagerSettings, ports: MemoryPorts) -> ManagerMemory:
    """Open the manager memory; where no setting says how near is near enough, the embedding model does."""
    place = ports.place_of(settings)
    if settings.min_score is None:
        settings = replace(settings, min_score=ports.embedder.profile.min_score)
    async with opening() as opened:
        store = await open_store(settings.folder, ports.embedder, engine=settings.store, place=place)
        opened.push_async_callback(store.close)
        manager = MemoryManager(
            settings=settings,
            store=ports.wrap(store),
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=ports.tombstones(settings, opened),
        )
        memory = ManagerMemory(manager, chat=ports.chat, clock=ports.clock, engine=ports.store_name(settings))
        opened.push_async_callback(memory.close)
        await memory.open()
        return memory


MANAGER = MemorySystem(
    name="manager",
    kind=ManagerSettings,
    memory=ManagerMemory,
    opener=open_manager,
    files=[EMBEDDED_FILE],
    earlier=IN_CHROMA,
    derived=INDEXES,
)
