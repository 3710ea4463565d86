"""The six memories by name: their settings, and how each is opened. Every face goes through here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from memstory.contract.texts import did_you_mean
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.chat_models import OFFLINE, chat_of
from memstory_reference.composition.embedders import ModelSettings, embedder_of, make_idle_embedder
from memstory_reference.composition.layers import LAYERS_FILE, open_layers
from memstory_reference.composition.manager import open_manager
from memstory_reference.composition.observations import OBSERVATIONS_FILE, open_observations
from memstory_reference.composition.pipeline import PIPELINE_FILE, open_pipeline_system
from memstory_reference.composition.topics import open_topics
from memstory_reference.composition.turns import open_turns
from memstory_reference.composition.vector_stores import is_store, reindex_store
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_OWNER
from memstory_reference.setting_rules import CHROMA
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.settings import NO_EMBEDDER, LayersSettings
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.stores.sqlite_store import OWNERS_FILE

if TYPE_CHECKING:
    from memstory.contract.models import ChatModel
    from memstory.contract.values import Tree
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.ports import Embedder
    from memstory_reference.system_memory import SystemMemory
    from memstory_reference.systems.layers.service import LayersService

OF_A_PERSON: Final = "me"
TextListener = Callable[[str], None]


class Settings(ModelSettings, Protocol):
    """What an operator decides about a memory."""

    def changed(self, values: Mapping[str, Tree], where: str) -> Self:
        """Return these settings with `values` in place; InputError names `where`, the key and what is allowed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What a memory is opened with: the models of its settings; with `is_idle`, an embedder that has its name alone."""

    is_idle: bool = False
    around_chat: Callable[[ChatModel], ChatModel] = lambda model: model
    on_text: TextListener | None = None

    def embedder_of(self, settings: ModelSettings) -> ProfiledEmbedder:
        """Return the embedder."""
        return make_idle_embedder(settings.embedding_model) if self.is_idle else embedder_of(settings)

    def chat_of(self, settings: ModelSettings, *, incognito: bool = False) -> ChatModel:
        """Return the language model, which passes on what it says while it says it."""
        return self.around_chat(chat_of(settings, self.on_text, incognito=incognito))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySystem:
    """One of the six: `kind` is the class of its settings, and `server` one that may say where its memories are stored.

    `owner` is whose memory it is in a talk where no name is given; of nobody's, the conversation owns it.
    `is_stored` says whether a memory is there already; `reindex` embeds all texts of a closed one by another model.
    """

    name: str
    kind: type[Any]
    is_stored: Callable[[Any], bool]
    open: Callable[[Any, Models], Awaitable[SystemMemory]]
    owner: str = DEFAULT_OWNER
    server: str | None = None
    reindex: Callable[[Any, Embedder], Awaitable[int]] | None = None

    @property
    def place(self) -> str:
        """The setting that says where its memories are stored."""
        return str(self.kind.place)

    def settings(self, file: Path | None, changes: Mapping[str, Tree], where: str) -> Settings:
        """Return the defaults, then what `file` says, then `changes`; `where` names those in an error."""
        settings: Settings = self.kind.default() if file is None else self.kind.read(file)
        return settings.changed(changes, where)

    def place_of(self, settings: Settings) -> str:
        """Return where the memories are stored, as it may be shown: a URL may have a password."""
        place = str(getattr(settings, self.place))
        return "Postgres" if "://" in place else place


async def _topics(settings: TopicsSettings, models: Models) -> SystemMemory:
    if "://" in settings.chroma_path:
        # Not repeated, for it may hold a password.
        raise InputError("--store is a URL; the topics memory is in a folder, and layers and turns can be in Postgres")
    clock = SystemClock()
    system = await open_topics(
        settings, embedder=models.embedder_of(settings), chat=models.chat_of(settings), clock=clock
    )
    return TopicsMemory(system, clock, settings.store)


async def _reindex_topics(settings: TopicsSettings, embedder: Embedder) -> int:
    if settings.chroma_server is not None or settings.store == CHROMA:
        raise InputError(
            "memory reindex works on a folder with 'store: sqlite'; else export, and import into a new folder"
        )
    return await reindex_store(settings.folder, embedder)


async def _observations(settings: ObservationsSettings, models: Models) -> SystemMemory:
    clock = SystemClock()
    chat = None if settings.chat == OFFLINE else models.chat_of(settings)
    service = await open_observations(
        settings.folder,
        embedder=models.embedder_of(settings),
        chat=chat,
        clock=clock,
        new_id=random_id,
        config=settings.config,
    )
    return ObservationsMemory(service, clock=clock, new_id=random_id, chat=chat)


async def _pipeline(settings: PipelineSettings, models: Models) -> SystemMemory:
    embedder = models.embedder_of(settings)
    return PipelineMemory(await open_pipeline_system(settings, embedder=embedder, chat=models.chat_of(settings)))


async def open_layers_of(settings: LayersSettings, models: Models) -> LayersService:
    """Return the layers memory of `settings`, for those that serve its own operations."""
    is_durable = settings.memory_mode.is_durable
    has_embedder = is_durable and settings.embedding_model != NO_EMBEDDER
    return await open_layers(
        settings.folder,
        place=parse_place(settings.store) if settings.is_postgres else None,
        embedder=models.embedder_of(settings) if has_embedder else None,
        model=None if settings.chat == OFFLINE else models.chat_of(settings, incognito=not is_durable),
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
        mode=settings.memory_mode,
    )


async def _layers(settings: LayersSettings, models: Models) -> SystemMemory:
    service = await open_layers_of(settings, models)
    place = SYSTEMS["layers"].place_of(settings)
    return LayersMemory(service, store_name=place if settings.memory_mode.is_durable else "memory only")


async def _manager(settings: ManagerSettings, models: Models) -> SystemMemory:
    embedder, chat = models.embedder_of(settings), models.chat_of(settings)
    system = await open_manager(settings, folder=settings.folder, embedder=embedder, chat=chat)
    return ManagerMemory(system, settings.store)


async def _turns(settings: TurnsSettings, models: Models) -> SystemMemory:
    system = await open_turns(
        settings.folder,
        place=parse_place(settings.store) if settings.is_postgres else None,
        embedder=models.embedder_of(settings),
        chat=models.chat_of(settings),
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
    )
    return TurnsMemory(system, "postgres" if settings.is_postgres else TurnsMemory.in_folder)


SYSTEMS: Final[Mapping[str, MemorySystem]] = {
    one.name: one
    for one in (
        MemorySystem(
            name="topics",
            kind=TopicsSettings,
            is_stored=lambda settings: settings.chroma_server is not None or is_store(settings.folder),
            open=_topics,
            owner=OF_A_PERSON,
            server="chroma_server",
            reindex=_reindex_topics,
        ),
        MemorySystem(
            name="observations",
            kind=ObservationsSettings,
            is_stored=lambda settings: (settings.folder / OBSERVATIONS_FILE).is_file(),
            open=_observations,
        ),
        MemorySystem(
            name="pipeline",
            kind=PipelineSettings,
            is_stored=lambda settings: (settings.folder / PIPELINE_FILE).is_file(),
            open=_pipeline,
            owner=OF_A_PERSON,
        ),
        MemorySystem(
            name="layers",
            kind=LayersSettings,
            is_stored=lambda settings: settings.is_postgres or (settings.folder / LAYERS_FILE).is_file(),
            open=_layers,
            owner="",
        ),
        MemorySystem(
            name="manager",
            kind=ManagerSettings,
            is_stored=lambda settings: is_store(settings.folder),
            open=_manager,
        ),
        MemorySystem(
            name="turns",
            kind=TurnsSettings,
            is_stored=lambda settings: settings.is_postgres or (settings.folder / OWNERS_FILE).is_file(),
            open=_turns,
        ),
    )
}


def system_named(name: str) -> MemorySystem:
    """Return the memory of this name; InputError if there is none."""
    if name not in SYSTEMS:
        raise InputError(
            f"there is no memory {name!r:.40}.{did_you_mean(name, SYSTEMS)} There are: {', '.join(SYSTEMS)}"
        )
    return SYSTEMS[name]
