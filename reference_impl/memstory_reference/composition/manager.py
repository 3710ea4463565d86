"""The manager memory, joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.vector_stores import Wrap, no_wrap, open_store, postgres_place
from memstory_reference.setting_rules import POSTGRES
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memory import ManagerMemory

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.ports import NewId
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.manager.settings import ManagerSettings


async def open_manager(
    settings: ManagerSettings,
    *,
    folder: Path,
    embedder: ProfiledEmbedder,
    chat: ChatModel,
    clock: Clock | None = None,
    new_id: NewId = random_id,
    wrap: Wrap = no_wrap,
    place: PostgresPlace | None = None,
    engine: str | None = None,
) -> ManagerMemory:
    """Open the manager memory in `place`, else in that of `settings` or in `folder`; by default on this clock.

    `engine` is what a report calls the store.
    """
    place, clock = place or postgres_place(settings, settings.store), clock or SystemClock()
    if settings.min_score is None:
        settings = replace(settings, min_score=embedder.profile.min_score)
    store = await open_store(folder, embedder, engine=settings.store, place=place)
    try:
        manager = MemoryManager(
            settings=settings,
            store=wrap(store),
            embedder=embedder,
            clock=clock,
            new_id=new_id,
            tombstones=Tombstones(folder / FILE) if place is None else None,
        )
        engine = engine or (POSTGRES if settings.is_postgres else settings.store)
        memory = ManagerMemory(manager, chat=chat, clock=clock, engine=engine)
        await memory.open()
    except BaseException:
        await store.close()
        raise
    return memory
