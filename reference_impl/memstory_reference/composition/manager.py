"""The manager memory, joined."""

from __future__ import annotations

from dataclasses import replace

from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.composition.declaration import IN_CHROMA, MemoryPorts, MemorySystem, closing_on_failure
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.storage.tombstones import FILE, NoTombstones, Tombstones
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings


async def open_manager(settings: ManagerSettings, ports: MemoryPorts) -> ManagerMemory:
    """Open the manager memory; where no setting says how near is near enough, the embedding model does."""
    place = ports.place_of(settings)
    if settings.min_score is None:
        settings = replace(settings, min_score=ports.embedder.profile.min_score)
    store = await open_store(settings.folder, ports.embedder, engine=settings.store, place=place)
    async with closing_on_failure(store.close):
        memory = ManagerMemory(
            settings=settings,
            vectors=ports.wrap(store),
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            chat=ports.chat,
            tombstones=NoTombstones() if place else Tombstones(settings.folder / FILE),
            engine=ports.store_name(settings),
        )
    async with closing_on_failure(memory.close):
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
