"""The manager memory, joined."""

from __future__ import annotations

from functools import partial

from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.composition.declaration import IN_CHROMA, MemoryPorts, MemorySystem, open_on_vectors
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings


async def open_manager(settings: ManagerSettings, ports: MemoryPorts) -> ManagerMemory:
    """Open the manager memory."""
    return await open_on_vectors(settings, ports, partial(ManagerMemory, chat=ports.chat))


MANAGER = MemorySystem(
    name="manager",
    kind=ManagerSettings,
    memory=ManagerMemory,
    opener=open_manager,
    files=[EMBEDDED_FILE],
    earlier=IN_CHROMA,
    derived=INDEXES,
)
