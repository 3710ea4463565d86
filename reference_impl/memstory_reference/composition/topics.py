"""The topics memory, joined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.vector_stores import Wrap, no_wrap, open_store, postgres_place
from memstory_reference.setting_rules import POSTGRES
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_service import MemoryService

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.bus import Bus
    from memstory_reference.ports import Embedder, NewId, VectorStore
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.topics.settings import TopicsSettings


async def open_topics(
    settings: TopicsSettings,
    *,
    embedder: ProfiledEmbedder,
    chat: ChatModel,
    clock: Clock | None = None,
    new_id: NewId = random_id,
    wrap: Wrap = no_wrap,
    bus: Bus | None = None,
    place: PostgresPlace | None = None,
    engine: str | None = None,
) -> TopicsMemory:
    """Open the topics memory in `place`, else on the store of `settings`; by default on this machine's clock.

    `engine` is what a report calls the store.
    """
    store = wrap(await open_topics_store(settings, embedder, place))
    service = memory_service(settings, store, embedder, clock, new_id)
    engine = engine or (POSTGRES if settings.is_postgres else settings.store)
    memory = TopicsMemory(service, chat=chat, new_id=new_id, bus=bus, engine=engine)
    try:
        await memory.open()
    except BaseException:
        await memory.close()
        raise
    return memory


async def open_topics_store(
    settings: TopicsSettings, embedder: Embedder, place: PostgresPlace | None = None
) -> VectorStore:
    """Open the vector store in `place`, else that of `settings`."""
    folder, server = settings.folder, settings.chroma_server
    place = place or postgres_place(settings, settings.store)
    return await open_store(folder, embedder, engine=settings.store, server=server, place=place)


def memory_service(
    settings: TopicsSettings,
    store: VectorStore,
    embedder: ProfiledEmbedder,
    clock: Clock | None = None,
    new_id: NewId = random_id,
) -> MemoryService:
    """Return the memory alone, without any agent; where no setting says how near is near enough, the model does."""
    is_elsewhere = settings.chroma_server or settings.is_postgres or settings.store == POSTGRES
    return MemoryService(
        settings=replace(settings, min_score=embedder.profile.min_score) if settings.min_score is None else settings,
        store=store,
        embedder=embedder,
        clock=clock or SystemClock(),
        new_id=new_id,
        tombstones=None if is_elsewhere else Tombstones(settings.folder / FILE),
    )
