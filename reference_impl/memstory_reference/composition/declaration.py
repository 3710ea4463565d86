"""What a memory is declared by: its settings, its opener and its files; and what it is opened with."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from memstory_reference.adapters.embedding.fixed_vectors import IdleEmbedder
from memstory_reference.adapters.machine import SystemClock, random_id
from memstory_reference.adapters.store_folder import FolderLock, copy_folder
from memstory_reference.composition.chat_models import OFFLINE, chat_of, make_chat, no_embedder
from memstory_reference.composition.embedders import embedder_of, make_idle_embedder
from memstory_reference.composition.vector_stores import COLLECTIONS, no_wrap, open_store, postgres_place
from memstory_reference.errors import InputError, OtherModelError
from memstory_reference.input_checks import DEFAULT_OWNER
from memstory_reference.ports import BY_RULES, STAND_IN
from memstory_reference.storage.reindexing import PARTS, EmbeddedFile, reindex
from memstory_reference.storage.tombstones import FILE, NoTombstones, Tombstones

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory.contract.values import ToolCall, Tree
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.bus import Bus
    from memstory_reference.bus.calls import Caller
    from memstory_reference.ports import NewId
    from memstory_reference.setting_rules import CheckedSettings
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.system_memory import SystemMemory
    from memstory_reference.vector_memory import VectorMemory


M = TypeVar("M", bound="VectorMemory")
IN_CHROMA: Final = (f"{COLLECTIONS}/chroma.sqlite3",)
"""The file of a folder whose rows are in Chroma."""


@asynccontextmanager
async def opening() -> AsyncIterator[AsyncExitStack]:
    """Yield what closes all that is put on it, the latest first, if what it was opened for cannot be had."""
    async with AsyncExitStack() as opened:
        yield opened
        opened.pop_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPorts:
    """What a memory runs on: by default without a language model, on this machine's clock.

    With `has_model`, `chat` also decides what a memory with rules of its own would decide by them. `wrap` puts
    something around its store; `place` is a database in place of what its settings name.
    """

    embedder: ProfiledEmbedder
    chat: ChatModel = field(default_factory=lambda: make_chat(OFFLINE, no_embedder, ollama_host=""))
    has_model: bool = False
    clock: Clock = field(default_factory=SystemClock)
    new_id: NewId = random_id
    wrap: Callable[[Any], Any] = no_wrap
    place: PostgresPlace | None = None

    @property
    def model(self) -> ChatModel | None:
        """The language model of a memory that otherwise goes by rules of its own."""
        return self.chat if self.has_model else None

    def place_of(self, settings: CheckedSettings) -> PostgresPlace | None:
        """Return the database that has the memory, None for one on this machine."""
        return self.place or postgres_place(settings, settings.engine)

    def tombstones(self, settings: CheckedSettings, opened: AsyncExitStack) -> Tombstones:
        """Return what keeps away from a folder what was forgotten for good, until `opened` closes it."""
        is_here = self.place is None and not settings.is_elsewhere
        made = Tombstones(settings.folder / FILE) if is_here else NoTombstones()
        opened.callback(made.close)
        return made

    def store_name(self, settings: CheckedSettings) -> str:
        """Return what a report calls the store."""
        place = self.place_of(settings)
        return settings.engine if place is None else place.name


async def open_on_vectors(settings: Any, ports: MemoryPorts, make: Callable[..., M], server: str | None = None) -> M:
    """Open what `make` makes on a vector store: of a Chroma `server`, in Postgres, or in the settings' folder.

    Where no setting says how near is near enough, the embedding model does.
    """
    place, embedder = ports.place_of(settings), ports.embedder
    if settings.min_score is None:
        settings = replace(settings, min_score=embedder.profile.min_score)
    async with opening() as opened:
        store = await open_store(settings.folder, embedder, engine=settings.store, server=server, place=place)
        opened.push_async_callback(store.close)
        memory = make(
            settings=settings,
            vectors=ports.wrap(store),
            embedder=embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=ports.tombstones(settings, opened),
            engine=ports.store_name(settings),
        )
    async with opening() as opened:
        opened.push_async_callback(memory.close)
        await memory.open()
    return memory


def ports_of(settings: CheckedSettings, on_text: Callable[[str], None] | None = None) -> MemoryPorts:
    """Return the models of `settings`, on this machine; `on_text` hears what the chat model says while it says it."""
    chat = chat_of(settings, on_text)
    embedder = embedder_of(settings) if settings.embeds else IdleEmbedder(settings.embedding_model)
    return MemoryPorts(embedder=embedder, chat=chat, has_model=settings.chat != OFFLINE)


class Part(Protocol):
    """What a process serves."""

    async def start(self) -> None:
        """Serve from now on."""
        ...

    async def stop(self) -> None:
        """Finish what was taken, and take no more."""
        ...

    async def come_back(self) -> None:
        """Do what is to be done when the bus was away."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPart:
    """A part of a memory that processes of their own serve on a bus; what `opener` opens is closed at its end.

    What it `gives` is in the status of the memory while some process serves it.
    """

    opener: Callable[[Any, Bus], AbstractAsyncContextManager[Part]]
    gives: str | None = None


Connect: TypeAlias = "Callable[[Callable[[str], Caller], Callable[[Sequence[ToolCall]], None]], SystemMemory]"
"""Makes the memory in other processes of what calls a part by its name, and of what is told of calls of tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySystem:
    """One of the six: `kind` is the class of its settings, `memory` that of what `opener` opens, whole or not at all.

    With `has_rules` it goes by rules of its own where no language model is named, and leaves the stand-in alone.
    `owner` is whose memory it is in a talk where no name is given; of nobody's, the conversation owns it.
    `files` are those of its folder that vectors belong to, with the names that `earlier` versions gave the last;
    `derived` is made again from them where it is gone. Where other processes may serve its `parts`, by their names,
    `connect` makes the memory that they are together.
    """

    name: str
    kind: type[Any]
    memory: type[SystemMemory]
    opener: Callable[[Any, MemoryPorts], Awaitable[SystemMemory]]
    files: Sequence[EmbeddedFile]
    earlier: Sequence[str] = ()
    derived: Sequence[str] = ()
    owner: str = DEFAULT_OWNER
    has_rules: bool = False
    parts: Mapping[str, ServedPart] = field(default_factory=dict)
    connect: Connect | None = None

    @property
    def place(self) -> str:
        """The setting that says where its memories are stored."""
        return str(self.kind.place)

    def settings(
        self, file: Path | None, changes: Mapping[str, Tree], where: str, place: str | None = None
    ) -> CheckedSettings:
        """Return the defaults, then what `file` says, then `changes` and the `place`; `where` names those in an error.

        A place that is given is meant, whatever server the file names.
        """
        settings: CheckedSettings = self.kind.default() if file is None else self.kind.read(file)
        if place is not None:
            elsewhere = {} if self.kind.server is None else {self.kind.server: None}
            changes = {**elsewhere, **changes, self.place: place}
        return settings.merge(changes, where)

    async def open(self, settings: CheckedSettings, ports: MemoryPorts | None = None) -> SystemMemory:
        """Open the memory, where no ports are given on the models of its settings."""
        memory = await self.opener(settings, ports or ports_of(settings))
        if not settings.is_elsewhere:
            # A process that was killed may have left it, with texts that are forgotten since.
            shutil.rmtree(settings.folder / PARTS, ignore_errors=True)
        return memory

    async def open_to_read(self, settings: CheckedSettings) -> SystemMemory:
        """Open the memory without a model, whichever its vectors are of."""
        name = settings.embedding_model
        idle = MemoryPorts(
            embedder=make_idle_embedder(name) if settings.embeds else IdleEmbedder(name),
            chat=make_chat(settings.chat, no_embedder, ollama_host=settings.ollama_host),
            has_model=settings.chat != OFFLINE,
        )
        try:
            return await self.open(settings, idle)
        except OtherModelError as other:
            made_with = settings.merge({"embedding_model": other.model}, "the store")
            return await self.open(made_with, replace(idle, embedder=IdleEmbedder(other.model)))

    def is_stored(self, settings: CheckedSettings) -> bool:
        """Whether a memory is there already; nothing is opened or made."""
        names = (self.files[-1].name, *self.earlier)
        return settings.is_elsewhere or any((settings.folder / name).is_file() for name in names)

    async def reindex(self, settings: CheckedSettings) -> int:
        """Embed all texts again by the model of the settings; return how many, of all owners."""
        again = "export, and import into a new one"
        self._check_folder(settings, "memory reindex works on a folder", again)
        folder = settings.folder
        if (folder / COLLECTIONS).is_dir():
            raise InputError(f"memory reindex works on a folder with 'store: sqlite'; of this one {again}")
        with FolderLock(folder):
            return await reindex(folder, self.files, self.derived, embedder_of(settings))

    def back_up(self, settings: CheckedSettings, to: Path) -> None:
        """Copy the memory to the new folder `to`, where it can be opened; other processes may write meanwhile."""
        own_tools = "back a database up by pg_dump, and a Chroma server by a copy of its folder while it is stopped"
        self._check_folder(settings, "memory backup copies a folder", own_tools)
        copy_folder(settings.folder, to, derived=(*self.derived, PARTS), foreign=[COLLECTIONS])

    def _check_folder(self, settings: CheckedSettings, works_on: str, otherwise: str) -> None:
        if settings.is_elsewhere:
            raise InputError(f"{works_on}, and this memory is on a server: {otherwise}")
        if not self.is_stored(settings):
            raise InputError(f"{self.place_of(settings)}: no memory is stored here. Name its folder with --store")

    def talker(self, model: str) -> str:
        """Return who answers where the language model has this name."""
        return BY_RULES if self.has_rules and STAND_IN in model else model

    def place_of(self, settings: CheckedSettings) -> str:
        """Return where the memories are stored, as it may be shown: a URL may have a password."""
        return "Postgres" if settings.is_postgres else str(getattr(settings, self.place))
