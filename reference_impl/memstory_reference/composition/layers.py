"""The layers memory, joined: its stores on this machine, in Postgres, or in memory alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memstory_reference.adapters.machine import random_id
from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.bus import Bus
from memstory_reference.composition.declaration import MemoryPorts, MemorySystem, Part, ServedPart, opening, ports_of
from memstory_reference.composition.extras import open_shared_database
from memstory_reference.storage.sql_database import IN_MEMORY, Database
from memstory_reference.storage.tombstones import Tombstones
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.logs import CRISES, FEEDBACK, Log, LogKind, R
from memstory_reference.systems.layers.memory import LayersMemory, is_nobody
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.process import PART, LayersPart, RemoteLayersMemory
from memstory_reference.systems.layers.recall import MODEL_OF_NONE
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.systems.layers.tables_store import EMBEDDED_FILE, migrations

if TYPE_CHECKING:
    from memstory_reference.storage.postgres.place import PostgresPlace

S = TypeVar("S", LayersStore, Log[Any])
_MEMORY = "layers"
"""What a schema of Postgres says of itself."""


async def open_layers(
    settings: LayersSettings, ports: MemoryPorts, is_anonymous: Callable[[str], bool] = is_nobody
) -> LayersMemory:
    """Open the layers memory in its folder, which this process then owns, or in Postgres, which many may share.

    Incognito touches neither and embeds nothing. Without a language model, extraction, policy and reconciliation go by
    documented rules.
    """
    name = ports.store_name(settings) if settings.memory_mode.is_durable else "memory only"
    async with opening() as opened:
        memory = LayersMemory(await _open_stores(settings, ports, opened), store_name=name, is_anonymous=is_anonymous)
        opened.push_async_callback(memory.close)
        await memory.open()
        return memory


async def _open_stores(settings: LayersSettings, ports: MemoryPorts, opened: AsyncExitStack) -> LayersPorts:
    """Open what the memory is stored in; `opened` closes it unless all of it is there."""
    is_durable, folder = settings.memory_mode.is_durable, settings.folder
    embedder = ports.embedder if settings.embeds else None
    model = embedder.model if embedder else MODEL_OF_NONE
    make = partial(
        LayersPorts, embedder=embedder, model=ports.model, clock=ports.clock, new_id=ports.new_id, config=settings
    )

    def close_later(store: S) -> S:
        opened.push_async_callback(store.aclose)
        return store

    place = ports.place_of(settings) if is_durable else None
    if place is not None:
        store = close_later(await layers_in_postgres(place, model=model))
        return make(
            store=ports.wrap(store),
            crisis=close_later(await log_in_postgres(place.sibling("audit"), CRISES)),
            feedback=close_later(await log_in_postgres(place.sibling("feedback"), FEEDBACK)),
            shared=True,
        )

    def file_of(name: str) -> Path:
        return folder / name if is_durable else IN_MEMORY

    lock = FolderLock(folder)
    if is_durable:
        opened.enter_context(lock)
    store = close_later(LayersStore(layers_database(file_of(EMBEDDED_FILE.name), model=model)))
    return make(
        store=ports.wrap(store),
        crisis=close_later(log_in_file(file_of("audit.sqlite3"), CRISES)),
        feedback=close_later(log_in_file(file_of("feedback.sqlite3"), FEEDBACK)),
        release=lock.release,
        tombstones=ports.tombstones(settings, opened) if is_durable else Tombstones(),
    )


async def layers_in_postgres(place: PostgresPlace, *, model: str) -> LayersStore:
    """Open the store in `place`."""
    return LayersStore(await open_shared_database(place, migrations(), memory=_MEMORY, model=model))


def log_in_file(file: Path, kind: LogKind[R]) -> Log[R]:
    """Open or make the file of a log, or one in memory."""
    return Log(Database(file, schema=kind.schema), kind)


async def log_in_postgres(place: PostgresPlace, kind: LogKind[R]) -> Log[R]:
    """Open a log in its own schema, so that code that reads memory cannot read it."""
    database = await open_shared_database(place, kind.migrations, memory=_MEMORY, model=MODEL_OF_NONE)
    return Log(database, kind)


@asynccontextmanager
async def _open_part(settings: LayersSettings, bus: Bus) -> AsyncIterator[Part]:
    memory = await open_layers(settings, ports_of(settings))
    try:
        yield LayersPart(memory, bus, new_id=random_id)
        await memory.shut_down()
    finally:
        await memory.close()


LAYERS = MemorySystem(
    name="layers",
    kind=LayersSettings,
    memory=LayersMemory,
    opener=open_layers,
    files=[EMBEDDED_FILE],
    owner="",
    has_rules=True,
    parts={PART: ServedPart(opener=_open_part)},
    connect=lambda caller, _: RemoteLayersMemory(caller(PART)),
)
