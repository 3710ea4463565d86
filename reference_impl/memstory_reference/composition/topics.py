"""The topics memory, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.vector_stores import Wrap, no_wrap, open_store, postgres_place
from memstory_reference.input_checks import limits_of
from memstory_reference.ports import SystemPorts
from memstory_reference.setting_rules import POSTGRES
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsConfig
from memstory_reference.systems.topics.system import TopicsSystem
from memstory_reference.systems.topics.tools import FORGET_MEMORY
from memstory_reference.tooling.agent import AgentConfig

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.adapters.embedding.prefixes import Profile, ProfiledEmbedder
    from memstory_reference.ports import Bus, Embedder, NewId, VectorStore
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.topics.settings import TopicsSettings


def make_topics(settings: TopicsSettings, ports: SystemPorts, profile: Profile, bus: Bus | None = None) -> TopicsSystem:
    """Return the topics system, not open yet; `profile` is that of the embedder, the bus by default its own."""
    return TopicsSystem(
        ports=ports,
        config=_config(settings, profile),
        toolset=settings.toolset,
        agent=agent_config(settings),
        tool_timeout_seconds=settings.tool_timeout_seconds,
        tombstones=_tombstones(settings),
        bus=bus,
    )


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
) -> TopicsSystem:
    """Open the topics system in `place`, else on the store of `settings`; by default on this machine's clock."""
    ports = SystemPorts(
        clock=clock or SystemClock(),
        embedder=embedder,
        store=wrap(await open_topics_store(settings, embedder, place)),
        chat=chat,
        new_id=new_id,
    )
    system = make_topics(settings, ports, embedder.profile, bus)
    try:
        await system.open()
    except BaseException:
        await system.close()
        raise
    return system


async def open_topics_store(
    settings: TopicsSettings, embedder: Embedder, place: PostgresPlace | None = None
) -> VectorStore:
    """Open the vector store in `place`, else that of `settings`."""
    folder, server = settings.folder, settings.chroma_server
    place = place or postgres_place(settings, settings.store)
    return await open_store(folder, embedder, engine=settings.store, server=server, place=place)


def memory_service(settings: TopicsSettings, store: VectorStore, embedder: ProfiledEmbedder) -> MemoryService:
    """Return the memory alone, on this machine's clock: for looking into a store without any agent."""
    return MemoryService(
        config=_config(settings, embedder.profile),
        store=store,
        embedder=embedder,
        clock=SystemClock(),
        new_id=random_id,
        tombstones=_tombstones(settings),
    )


def agent_config(settings: TopicsSettings) -> AgentConfig:
    """Return what the agent that talks may do."""
    return AgentConfig(
        steps=settings.steps,
        window_turns=settings.window_turns,
        limits=limits_of(settings),
        forgetting=frozenset({FORGET_MEMORY.name}),
    )


def _tombstones(settings: TopicsSettings) -> Tombstones | None:
    is_elsewhere = settings.chroma_server or settings.is_postgres or settings.store == POSTGRES
    return None if is_elsewhere else Tombstones(settings.folder / FILE)


def _config(settings: TopicsSettings, profile: Profile) -> TopicsConfig:
    return TopicsConfig(
        collection=settings.collection,
        top_k=settings.top_k,
        min_score=profile.min_score if settings.min_score is None else settings.min_score,
        strict_topics=settings.strict_topics,
        secrets=settings.secrets,
        keep_pins=settings.keep_pins,
        retention_days=settings.retention_days,
        limits=limits_of(settings),
    )
