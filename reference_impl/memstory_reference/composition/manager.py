"""The manager memory, joined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.vector_stores import Wrap, no_wrap, open_store, postgres_place
from memstory_reference.input_checks import limits_of
from memstory_reference.ports import SystemPorts
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.manager.manager import ManagerConfig
from memstory_reference.systems.manager.system import ManagerSystem

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
) -> ManagerSystem:
    """Open the manager system in `place`, else in that of `settings` or in `folder`; by default on this clock."""
    place = place or postgres_place(settings, settings.store)
    store = await open_store(folder, embedder, engine=settings.store, place=place)
    try:
        system = ManagerSystem(
            ports=SystemPorts(
                clock=clock or SystemClock(), embedder=embedder, store=wrap(store), chat=chat, new_id=new_id
            ),
            config=ManagerConfig(
                context_window_size=settings.context_window_size,
                min_score=embedder.profile.min_score if settings.min_score is None else settings.min_score,
                cleanup_interval_seconds=settings.cleanup_interval,
                zone=settings.zone,
                secrets=settings.secrets,
                keep_pins=settings.keep_pins,
                limits=limits_of(settings),
            ),
            tombstones=Tombstones(folder / FILE) if place is None else None,
        )
        await system.open()
    except BaseException:
        await store.close()
        raise
    return system
