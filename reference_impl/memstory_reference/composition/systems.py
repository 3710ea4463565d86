"""The six memories by name: their settings, and how each is opened. Every face goes through here."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from memstory.contract.texts import did_you_mean
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.folder_copy import copy_folder
from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.adapters.vectors.exact_store import EMBEDDED_FILE, INDEXES
from memstory_reference.composition.chat_models import OFFLINE, chat_of
from memstory_reference.composition.embedders import ModelSettings, embedder_of, make_idle_embedder
from memstory_reference.composition.layers import open_layers
from memstory_reference.composition.manager import open_manager
from memstory_reference.composition.observations import VECTORS, open_observations
from memstory_reference.composition.pipeline import open_pipeline_memory
from memstory_reference.composition.topics import open_topics
from memstory_reference.composition.turns import open_turns
from memstory_reference.composition.vector_stores import COLLECTIONS, postgres_place
from memstory_reference.errors import InputError, OtherModelError
from memstory_reference.input_checks import DEFAULT_OWNER
from memstory_reference.setting_rules import POSTGRES
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.storage.reindexing import PARTS, EmbeddedFile, reindex
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.settings import NO_EMBEDDER, LayersSettings
from memstory_reference.systems.layers.stores import tables_store as layers_tables
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.systems.observations import observations_store
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.systems.pipeline.stores import tables_store
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.stores import owner_store
from memstory_reference.systems.turns.stores.owner_store import MATRIX
from memstory_reference.systems.turns.stores.sqlite_store import EMBEDDED_OWNERS

if TYPE_CHECKING:
    from memstory.contract.models import ChatModel
    from memstory.contract.values import Tree
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.system_memory import SystemMemory

OF_A_PERSON: Final = "me"
IN_CHROMA: Final = (f"{COLLECTIONS}/chroma.sqlite3",)
TextListener = Callable[[str], None]


class Settings(ModelSettings, Protocol):
    """What an operator decides about a memory."""

    @property
    def folder(self) -> Path: ...
    @property
    def is_postgres(self) -> bool: ...
    def merge(self, values: Mapping[str, Tree], where: str) -> Self:
        """Return these settings with `values` in place; InputError names `where`, the key and what is allowed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What a memory is opened with: the models of its settings; with `is_idle`, an embedder that has a name alone.

    That is the name of the settings' model, or of the one that the memory was made with.
    """

    is_idle: bool = False
    made_with: str | None = None
    around_chat: Callable[[ChatModel], ChatModel] = lambda model: model
    on_text: TextListener | None = None

    def embedder_of(self, settings: ModelSettings) -> ProfiledEmbedder:
        """Return the embedder."""
        if not self.is_idle:
            return embedder_of(settings)
        return make_idle_embedder(settings.embedding_model, self.made_with)

    def chat_of(self, settings: ModelSettings, *, incognito: bool = False) -> ChatModel:
        """Return the language model, which passes on what it says while it says it."""
        return self.around_chat(chat_of(settings, self.on_text, incognito=incognito))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySystem:
    """One of the six: `kind` is the class of its settings, `memory` that of what is opened.

    `server` is a setting that may say where its memories are stored.

    `owner` is whose memory it is in a talk where no name is given; of nobody's, the conversation owns it.
    `files` are those of its folder that vectors belong to, with the names that `earlier` versions gave the last;
    `derived` is made again from them where it is gone.
    """

    name: str
    kind: type[Any]
    memory: type[SystemMemory]
    opener: Callable[[Any, Models], Awaitable[SystemMemory]]
    files: Sequence[EmbeddedFile]
    earlier: Sequence[str] = ()
    derived: Sequence[str] = ()
    owner: str = DEFAULT_OWNER
    server: str | None = None

    @property
    def place(self) -> str:
        """The setting that says where its memories are stored."""
        return str(self.kind.place)

    def settings(self, file: Path | None, changes: Mapping[str, Tree], where: str) -> Settings:
        """Return the defaults, then what `file` says, then `changes`; `where` names those in an error."""
        settings: Settings = self.kind.default() if file is None else self.kind.read(file)
        return settings.merge(changes, where)

    async def open(self, settings: Settings, models: Models) -> SystemMemory:
        """Open the memory."""
        memory = await self.opener(settings, models)
        if not self._is_elsewhere(settings):
            # A process that was killed may have left it, with texts that are forgotten since.
            shutil.rmtree(settings.folder / PARTS, ignore_errors=True)
        return memory

    async def open_to_read(self, settings: Settings) -> SystemMemory:
        """Open the memory without a model, whichever its vectors are of."""
        try:
            return await self.open(settings, Models(is_idle=True))
        except OtherModelError as other:
            made_with = settings.merge({"embedding_model": other.model}, "the store")
            return await self.open(made_with, Models(is_idle=True, made_with=other.model))

    def is_stored(self, settings: Settings) -> bool:
        """Whether a memory is there already; nothing is opened or made."""
        names = (self.files[-1].name, *self.earlier)
        return self._is_elsewhere(settings) or any((settings.folder / name).is_file() for name in names)

    async def reindex(self, settings: Settings) -> int:
        """Embed all texts again by the model of the settings; return how many, of all owners."""
        again = "export, and import into a new one"
        self._check_folder(settings, "memory reindex works on a folder", again)
        folder = settings.folder
        if (folder / COLLECTIONS).is_dir():
            raise InputError(f"memory reindex works on a folder with 'store: sqlite'; of this one {again}")
        with FolderLock(folder):
            return await reindex(folder, self.files, self.derived, embedder_of(settings))

    def back_up(self, settings: Settings, to: Path) -> None:
        """Copy the memory to the new folder `to`, where it can be opened; other processes may write meanwhile."""
        own_tools = "back a database up by pg_dump, and a Chroma server by a copy of its folder while it is stopped"
        self._check_folder(settings, "memory backup copies a folder", own_tools)
        copy_folder(settings.folder, to, derived=(*self.derived, PARTS), foreign=[COLLECTIONS])

    def _check_folder(self, settings: Settings, works_on: str, otherwise: str) -> None:
        if self._is_elsewhere(settings):
            raise InputError(f"{works_on}, and this memory is on a server: {otherwise}")
        if not self.is_stored(settings):
            raise InputError(f"{self.place_of(settings)}: no memory is stored here. Name its folder with --store")

    def _is_elsewhere(self, settings: Settings) -> bool:
        is_served = self.server is not None and getattr(settings, self.server) is not None
        return is_served or settings.is_postgres

    def place_of(self, settings: Settings) -> str:
        """Return where the memories are stored, as it may be shown: a URL may have a password."""
        return "Postgres" if settings.is_postgres else str(getattr(settings, self.place))


async def _topics(settings: TopicsSettings, models: Models) -> SystemMemory:
    return await open_topics(settings, embedder=models.embedder_of(settings), chat=models.chat_of(settings))


async def _observations(settings: ObservationsSettings, models: Models) -> SystemMemory:
    service = await open_observations(
        settings.folder,
        embedder=models.embedder_of(settings),
        chat=None if settings.chat == OFFLINE else models.chat_of(settings),
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
        place=postgres_place(settings, settings.config.store),
    )
    engine = POSTGRES if settings.is_postgres else settings.config.store
    return ObservationsMemory(service, engine)


async def _pipeline(settings: PipelineSettings, models: Models) -> SystemMemory:
    return await open_pipeline_memory(settings, embedder=models.embedder_of(settings), chat=models.chat_of(settings))


async def open_layers_of(settings: LayersSettings, models: Models) -> LayersMemory:
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
        store_name=SYSTEMS["layers"].place_of(settings) if is_durable else "memory only",
    )


async def _manager(settings: ManagerSettings, models: Models) -> SystemMemory:
    embedder, chat = models.embedder_of(settings), models.chat_of(settings)
    return await open_manager(settings, folder=settings.folder, embedder=embedder, chat=chat)


async def _turns(settings: TurnsSettings, models: Models) -> SystemMemory:
    return await open_turns(
        settings.folder,
        place=parse_place(settings.store) if settings.is_postgres else None,
        embedder=models.embedder_of(settings),
        chat=models.chat_of(settings),
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
    )


SYSTEMS: Final[Mapping[str, MemorySystem]] = {
    one.name: one
    for one in (
        MemorySystem(
            name="topics",
            kind=TopicsSettings,
            memory=TopicsMemory,
            opener=_topics,
            files=[EMBEDDED_FILE],
            earlier=IN_CHROMA,
            derived=INDEXES,
            owner=OF_A_PERSON,
            server="chroma_server",
        ),
        MemorySystem(
            name="observations",
            kind=ObservationsSettings,
            memory=ObservationsMemory,
            opener=_observations,
            files=[observations_store.EMBEDDED_FILE],
            derived=[VECTORS],
        ),
        MemorySystem(
            name="pipeline",
            kind=PipelineSettings,
            memory=PipelineMemory,
            opener=_pipeline,
            files=[tables_store.EMBEDDED_FILE],
            owner=OF_A_PERSON,
        ),
        MemorySystem(
            name="layers",
            kind=LayersSettings,
            memory=LayersMemory,
            opener=open_layers_of,
            files=[layers_tables.EMBEDDED_FILE],
            owner="",
        ),
        MemorySystem(
            name="manager",
            kind=ManagerSettings,
            memory=ManagerMemory,
            opener=_manager,
            files=[EMBEDDED_FILE],
            earlier=IN_CHROMA,
            derived=INDEXES,
        ),
        MemorySystem(
            name="turns",
            kind=TurnsSettings,
            memory=TurnsMemory,
            opener=_turns,
            files=[owner_store.EMBEDDED_FILE, EMBEDDED_OWNERS],
            derived=[MATRIX],
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
