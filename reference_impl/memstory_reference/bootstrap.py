"""Joins systems and adapters: the one module that knows both. What is dear to import is imported when it is chosen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.cache_folder import cache_folder
from memstory_reference.errors import InputError, SetupProblem
from memstory_reference.systems.layers.audit.crisis_log import InMemoryCrisisLog
from memstory_reference.systems.layers.audit.sqlite_crisis_store import SqliteCrisisLog
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.feedback.session_feedback import InMemorySessionFeedback
from memstory_reference.systems.layers.feedback.sqlite_feedback_store import SqliteSessionFeedback
from memstory_reference.systems.layers.modes import MemoryMode
from memstory_reference.systems.layers.recall.embeddings import MODEL_OF_NONE
from memstory_reference.systems.layers.service import LayersPorts, LayersService, LayersStores
from memstory_reference.systems.layers.stores.memory_store import InMemoryStore
from memstory_reference.systems.layers.stores.postgres.place import AUDIT, FEEDBACK, PostgresPlace
from memstory_reference.systems.layers.stores.sqlite_store import SqliteStore
from memstory_reference.systems.manager.manager import ManagerConfig
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.systems.manager.system import ManagerPorts, ManagerSystem
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.service import ObservationService
from memstory_reference.systems.pipeline.config import PipelineConfig
from memstory_reference.systems.pipeline.service import PipelineParts, PipelineService
from memstory_reference.systems.topics.config import TopicsConfig
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.topics.system import TopicsPorts, TopicsSystem
from memstory_reference.text.secret_guard import secret_in
from memstory_reference.tooling.agent import AgentConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder
    from memstory_reference.adapters.servers.nats_bus import NatsBus
    from memstory_reference.ports import ChatModel, Clock, Embedder, NewId, VectorStore
    from memstory_reference.systems.layers.stores.store import LayersStore
    from memstory_reference.systems.pipeline.selection import Reranker

MINILM = "all-MiniLM-L6-v2"
NOMIC = "nomic-embed-text"
OBSERVATIONS_FILE = "observations.sqlite3"
PIPELINE_FILE = "pipeline.sqlite3"
PIPELINE_EXACT_ROWS = 20_000  # 30 MB a user in use: at 10,000 memories half the time of the index, and none is missed
_OLLAMA, _RECORD, _REPLAY = "ollama:", "record:", "replay:"
STORE_FILE = "chroma.sqlite3"


def topics(settings: TopicsSettings, ports: TopicsPorts) -> TopicsSystem:
    """Return the topics system, not open yet."""
    return TopicsSystem(
        ports=ports,
        config=_topics_config(settings),
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


async def open_bus(address: str, name: str) -> NatsBus:
    """Return the bus of the NATS server at `address`; SetupProblem if none answers, or its client is missing."""
    try:
        # The client is an extra of its own.
        from memstory_reference.adapters.servers.nats_bus import open_nats_bus  # noqa: PLC0415
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("nats"):
            raise
        raise SetupProblem("the client of NATS is missing. Install it with: pip install 'memstory[nats]'") from problem
    return await open_nats_bus(address, name)


def memory_service(settings: TopicsSettings, store: VectorStore, embedder: Embedder) -> MemoryService:
    """Return the topics memory alone, with this machine's clock: for looking into a store without any agent."""
    from memstory_reference.adapters.clocks import SystemClock  # noqa: PLC0415
    from memstory_reference.adapters.random_ids import random_id  # noqa: PLC0415

    return MemoryService(
        config=_topics_config(settings), store=store, embedder=embedder, clock=SystemClock(), new_id=random_id
    )


def make_reranker(name: str | None) -> Reranker | None:
    """Return the re-ranker that a setting names: `cross-encoder`, `cross-encoder:MODEL`, or none.

    Raises:
        InputError: no re-ranker has this name.
    """
    if name is None:
        return None
    kind, _, model = name.partition(":")
    if kind != "cross-encoder":
        raise InputError(f"there is no re-ranker named {name!r:.80}; allowed: cross-encoder, cross-encoder:MODEL")
    from memstory_reference.adapters.embedding.cross_encoder import MODEL, CrossEncoderReranker  # noqa: PLC0415

    return CrossEncoderReranker(model or MODEL)


def make_embedder(name: str, *, ollama_host: str) -> CachedEmbedder:
    """Return the embedder that a setting names, with this machine's cache before it.

    Raises:
        InputError: no embedder has this name.
        SetupProblem: its weights are missing or wrong.
    """
    from memstory_reference.adapters.embedding.embedding_cache import FILE, CachedEmbedder  # noqa: PLC0415

    cache = cache_folder(os.environ)
    if name in (MINILM, "minilm"):
        from memstory_reference.adapters.embedding import weights  # noqa: PLC0415
        from memstory_reference.adapters.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415

        return CachedEmbedder(MiniLmEmbedder(weights.find(cache)), cache / FILE)
    if name == NOMIC or _is_ollama(name):
        from memstory_reference.adapters.embedding.ollama_embedder import OllamaEmbedder  # noqa: PLC0415

        return CachedEmbedder(OllamaEmbedder(name.removeprefix(_OLLAMA), ollama_host), cache / FILE)
    raise _no_embedder(name)


def make_idle_embedder(name: str) -> Embedder:
    """Return an embedder that only says which model a setting names: nothing is loaded, and nobody is asked."""
    from memstory_reference.adapters.embedding.idle_embedder import IdleEmbedder  # noqa: PLC0415

    if name in (MINILM, "minilm"):
        return IdleEmbedder(MINILM)
    if name == NOMIC or _is_ollama(name):
        return IdleEmbedder(name.removeprefix(_OLLAMA).removesuffix(":latest"))
    raise _no_embedder(name)


def make_chat(
    name: str, embedder: Embedder | None, *, ollama_host: str, on_text: Callable[[str], None] | None = None
) -> ChatModel:
    """Return the chat model that a setting names; the stand-in compares texts by `embedder` if it has one.

    `on_text` is told each part of an answer by a model that answers in parts. `record:NAME@FILE` is the model NAME
    whose calls are kept in FILE, `replay:FILE` answers from there without any model.

    Raises:
        InputError: no chat model has this name.
    """
    if name.startswith(_RECORD):
        inner, _, file = name.removeprefix(_RECORD).partition("@")
        if not file or inner.startswith((_RECORD, _REPLAY)):
            raise InputError(
                f"{name!r:.80} records nothing; allowed: record:NAME@FILE, as record:ollama:qwen3:4b@run.json"
            )
        from memstory_reference.adapters.chat_models.cassette import RecordingChat  # noqa: PLC0415

        return RecordingChat(make_chat(inner, embedder, ollama_host=ollama_host, on_text=on_text), Path(file))
    if name.startswith(_REPLAY) and name != _REPLAY:
        from memstory_reference.adapters.chat_models.cassette import ReplayingChat  # noqa: PLC0415

        return ReplayingChat(Path(name.removeprefix(_REPLAY)))
    if name == "offline":
        from memstory_reference.adapters.offline_chat import OfflineChat  # noqa: PLC0415

        return OfflineChat(embedder)
    if _is_ollama(name):
        from memstory_reference.adapters.chat_models.ollama_chat import OllamaChat  # noqa: PLC0415

        return OllamaChat(name.removeprefix(_OLLAMA), ollama_host, on_text=on_text)
    raise InputError(
        f"there is no chat model named {name!r:.80}; allowed: offline, ollama:NAME, record:NAME@FILE, replay:FILE"
    )


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
            file=folder / OBSERVATIONS_FILE,
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


async def open_pipeline(
    folder: Path,
    *,
    embedder: Embedder,
    chat: ChatModel | None,
    clock: Clock,
    new_id: NewId,
    config: PipelineConfig,
    reranker: Reranker | None = None,
    wrap: Callable[[VectorStore], VectorStore] = lambda store: store,
) -> PipelineService:
    """Open the pipeline in `folder`; without a chat model it summarises by rules, without a re-ranker it blends."""
    store = await open_store(folder / "vectors", embedder, exact_rows=PIPELINE_EXACT_ROWS)
    try:
        parts = PipelineParts(
            vectors=wrap(store), embedder=embedder, clock=clock, new_id=new_id, chat=chat, reranker=reranker
        )
        service = PipelineService(folder / PIPELINE_FILE, parts, config)
        await service.open()
    except BaseException:
        await store.close()
        raise
    return service


async def open_layers(
    folder: Path,
    *,
    embedder: Embedder | None,
    model: ChatModel | None,
    clock: Clock,
    new_id: NewId,
    config: LayersConfig,
    mode: MemoryMode = MemoryMode.LOCAL,
    place: PostgresPlace | None = None,
    wrap: Callable[[LayersStore], LayersStore] = lambda store: store,
) -> LayersService:
    """Open the layers memory in `folder`, which this process then owns, or in `place`, which many may share.

    Incognito touches neither and embeds nothing. Without a chat model, extraction, policy and reconciliation go by
    documented rules.
    """
    if mode.is_durable and place is not None:
        stores = await _shared_layers(place, embedder)
    elif mode.is_durable:
        stores = _durable_layers(folder, embedder)
    else:
        stores = LayersStores(memory=InMemoryStore(), crisis=InMemoryCrisisLog(), feedback=InMemorySessionFeedback())
        embedder = None
    ports = LayersPorts(
        stores=replace(stores, memory=wrap(stores.memory)),
        embedder=embedder,
        model=model,
        clock=clock,
        new_id=new_id,
    )
    service = LayersService(ports=ports, config=config, mode=mode)
    try:
        await service.open()
    except BaseException:
        await service.close()
        raise
    return service


def _durable_layers(folder: Path, embedder: Embedder | None) -> LayersStores:
    from memstory_reference.adapters.folder_lock import FolderLock  # noqa: PLC0415

    lock = FolderLock(folder)
    lock.acquire()
    try:
        return LayersStores(
            memory=SqliteStore(folder / "memory.sqlite3", model=embedder.model if embedder else MODEL_OF_NONE),
            crisis=SqliteCrisisLog(folder / "audit.sqlite3"),
            feedback=SqliteSessionFeedback(folder / "feedback.sqlite3"),
            release=lock.release,
        )
    except BaseException:
        lock.release()
        raise


async def _shared_layers(place: PostgresPlace, embedder: Embedder | None) -> LayersStores:
    with _postgres_driver():
        from memstory_reference.systems.layers.audit.postgres_crisis_store import open_crisis_log  # noqa: PLC0415
        from memstory_reference.systems.layers.feedback.postgres_feedback_store import open_feedback  # noqa: PLC0415
        from memstory_reference.systems.layers.stores.postgres.postgres_store import open_postgres  # noqa: PLC0415
    async with AsyncExitStack() as opened:
        memory = await open_postgres(place, model=embedder.model if embedder else MODEL_OF_NONE)
        opened.push_async_callback(memory.aclose)
        crisis = await open_crisis_log(place.beside(AUDIT))
        opened.push_async_callback(crisis.aclose)
        feedback = await open_feedback(place.beside(FEEDBACK))
        opened.pop_all()
    return LayersStores(memory=memory, crisis=crisis, feedback=feedback, shared=True)


async def claim_layers(place: PostgresPlace, owner: str) -> None:
    """Note in the database whose the layers in `place` are, before they are opened."""
    with _postgres_driver():
        from memstory_reference.systems.layers.stores.postgres.schema_store import claim_schema  # noqa: PLC0415
    await claim_schema(place, owner)


async def drop_unclaimed_layers(place: PostgresPlace, prefix: str, is_gone: Callable[[str], bool]) -> list[str]:
    """Remove the layers in schemas of this prefix whose owner is gone; return the schemas' names."""
    with _postgres_driver():
        from memstory_reference.systems.layers.stores.postgres.schema_store import drop_unclaimed  # noqa: PLC0415
    return await drop_unclaimed(place, prefix, is_gone)


@contextmanager
def _postgres_driver() -> Iterator[None]:
    """Say what to install where the driver, an extra of its own, is missing; it is imported when it is chosen."""
    try:
        yield
    except ImportError as problem:
        # Without libpq the driver itself fails, and names no module.
        if problem.name is not None and not problem.name.startswith("psycopg"):
            raise
        msg = "the driver of Postgres is missing. Install it with: pip install 'memstory[postgres]'"
        raise SetupProblem(msg) from problem


def is_store(folder: Path) -> bool:
    """Say whether a vector store lies in `folder`; nothing is opened or made."""
    return (folder / STORE_FILE).is_file()


async def open_store(
    folder: Path, embedder: Embedder, *, server: str | None = None, exact_rows: int | None = None
) -> VectorStore:
    """Open the vector store for the vectors of `embedder`: of `server` (HOST:PORT), else in `folder`.

    Until it is closed this process owns the folder. An owner of up to `exact_rows` rows is searched exactly in memory.
    """
    from memstory_reference.adapters.vectors.chroma import EXACT_ROWS, open_chroma, open_chroma_server  # noqa: PLC0415

    if server is None:
        return await open_chroma(
            folder, model=embedder.model, dimension=embedder.dimension, exact_rows=exact_rows or EXACT_ROWS
        )
    host, _, port = server.rpartition(":")
    return await open_chroma_server(host, int(port), model=embedder.model, dimension=embedder.dimension)


def _topics_config(settings: TopicsSettings) -> TopicsConfig:
    return TopicsConfig(
        collection=settings.collection,
        top_k=settings.top_k,
        min_score=settings.min_score,
        strict_topics=settings.strict_topics,
        guard=None if settings.keep_secrets else secret_in,
        retention_days=settings.retention_days,
    )


def _no_embedder(name: str) -> InputError:
    return InputError(f"there is no embedder named {name!r:.80}; allowed: {MINILM}, {NOMIC}, ollama:NAME")


def _is_ollama(name: str) -> bool:
    return name.startswith(_OLLAMA) and len(name) > len(_OLLAMA)
