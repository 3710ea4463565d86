"""Joins systems and adapters: the one module that knows both. What is dear to import is imported when it is chosen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.cache_folder import cache_folder
from memstory_reference.agent import AgentConfig
from memstory_reference.errors import InputError
from memstory_reference.manager_settings import ManagerSettings
from memstory_reference.manager_system import ManagerPorts, ManagerSystem
from memstory_reference.settings import TopicsSettings
from memstory_reference.systems.manager.manager import ManagerConfig
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.service import ObservationService
from memstory_reference.systems.topics.config import TopicsConfig
from memstory_reference.topics_system import TopicsPorts, TopicsSystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from memstory_reference.adapters.prefixes import ProfiledEmbedder
    from memstory_reference.ports import ChatModel, Clock, Embedder, NewId, VectorStore

MINILM = "all-MiniLM-L6-v2"
NOMIC = "nomic-embed-text"
_OLLAMA = "ollama:"


def topics(settings: TopicsSettings, ports: TopicsPorts) -> TopicsSystem:
    """Return the topics system, not open yet."""
    return TopicsSystem(
        ports=ports,
        config=TopicsConfig(
            collection=settings.collection,
            top_k=settings.top_k,
            min_score=settings.min_score,
            strict_topics=settings.strict_topics,
            retention_days=settings.retention_days,
        ),
        toolset=settings.toolset,
        agent=AgentConfig(steps=settings.steps, window_turns=settings.window_turns),
        tool_timeout_seconds=settings.tool_timeout_seconds,
    )


def manager(settings: ManagerSettings, ports: ManagerPorts) -> ManagerSystem:
    """Return the manager system, not open yet."""
    return ManagerSystem(
        ports=ports,
        config=ManagerConfig(
            context_window_size=settings.context_window_size,
            min_score=settings.min_score,
            cleanup_interval_seconds=settings.cleanup_interval,
            zone=settings.zone,
        ),
    )


def make_embedder(name: str, *, ollama_host: str) -> ProfiledEmbedder:
    """Return the embedder that a setting names, with this machine's cache before it.

    Raises:
        InputError: no embedder has this name.
        SetupProblem: its weights are missing or wrong.
    """
    from memstory_reference.adapters.embedding_cache import FILE, CachedEmbedder  # noqa: PLC0415

    cache = cache_folder(os.environ)
    if name in (MINILM, "minilm"):
        from memstory_reference.adapters import weights  # noqa: PLC0415
        from memstory_reference.adapters.minilm import MiniLmEmbedder  # noqa: PLC0415

        return CachedEmbedder(MiniLmEmbedder(weights.find(cache)), cache / FILE)
    if name == NOMIC or _is_ollama(name):
        from memstory_reference.adapters.ollama_embedder import OllamaEmbedder  # noqa: PLC0415

        return CachedEmbedder(OllamaEmbedder(name.removeprefix(_OLLAMA), ollama_host), cache / FILE)
    raise InputError(f"there is no embedder named {name!r:.80}; allowed: {MINILM}, {NOMIC}, ollama:NAME")


def make_chat(name: str, embedder: Embedder | None, *, ollama_host: str) -> ChatModel:
    """Return the chat model that a setting names; the stand-in compares texts by `embedder` if it has one.

    Raises:
        InputError: no chat model has this name.
    """
    if name == "offline":
        from memstory_reference.adapters.offline_chat import OfflineChat  # noqa: PLC0415

        return OfflineChat(embedder)
    if _is_ollama(name):
        from memstory_reference.adapters.ollama_chat import OllamaChat  # noqa: PLC0415

        return OllamaChat(name.removeprefix(_OLLAMA), ollama_host)
    raise InputError(f"there is no chat model named {name!r:.80}; allowed: offline, ollama:NAME")


async def open_observations(
    folder: Path,
    *,
    embedder: Embedder,
    chat: ChatModel | None,
    clock: Clock,
    new_id: NewId,
    config: ObservationsConfig,
    wrap: Callable[[VectorStore], VectorStore] = lambda store: store,
) -> ObservationService:
    """Open the observations in `folder`, both indexes in step; without a chat model they are summarised by rules."""
    store = await open_store(folder / "vectors", embedder)
    try:
        service = ObservationService(
            file=folder / "observations.sqlite3",
            vectors=wrap(store),
            embedder=embedder,
            chat=chat,
            clock=clock,
            new_id=new_id,
            config=config,
        )
        await service.open()
    except BaseException:
        await store.close()
        raise
    return service


async def open_store(folder: Path, embedder: Embedder, *, server: str | None = None) -> VectorStore:
    """Open the vector store for the vectors of `embedder`: of `server` (HOST:PORT), else in `folder`.

    Until it is closed this process owns the folder.
    """
    from memstory_reference.adapters.chroma import open_chroma, open_chroma_server  # noqa: PLC0415

    if server is None:
        return await open_chroma(folder, model=embedder.model, dimension=embedder.dimension)
    host, _, port = server.rpartition(":")
    return await open_chroma_server(host, int(port), model=embedder.model, dimension=embedder.dimension)


def _is_ollama(name: str) -> bool:
    return name.startswith(_OLLAMA) and len(name) > len(_OLLAMA)
