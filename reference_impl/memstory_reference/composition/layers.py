"""The layers memory, joined: its stores on this machine, in Postgres, or in memory alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.storage.database_store import IN_MEMORY, Database
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.layers.log_entries import CRISES, FEEDBACK
from memstory_reference.systems.layers.memory import LayersMemory, is_nobody
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.recall.retrieval import MODEL_OF_NONE
from memstory_reference.systems.layers.settings import MemoryMode
from memstory_reference.systems.layers.stores.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.stores.log_store import Log, LogKind, R
from memstory_reference.systems.layers.stores.tables_store import EMBEDDED_FILE, migrations

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.systems.layers.settings import LayersConfig

LAYERS_FILE = EMBEDDED_FILE.name
_MEMORY = "layers"
"""What a schema of Postgres says of itself."""


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
    store_name: str = "",
    is_anonymous: Callable[[str], bool] = is_nobody,
) -> LayersMemory:
    """Open the layers memory in `folder`, which this process then owns, or in `place`, which many may share.

    Incognito touches neither and embeds nothing. Without a chat model, extraction, policy and reconciliation go by
    documented rules.
    """
    if not mode.is_durable:
        embedder = None
    make = partial(LayersPorts, embedder=embedder, model=model, clock=clock, new_id=new_id, config=config)
    if mode.is_durable and place is not None:
        ports = await _shared_layers(place, embedder, make)
    elif mode.is_durable:
        ports = _durable_layers(folder, embedder, make)
    else:
        ports = make(
            store=LayersStore(layers_database(IN_MEMORY, model=MODEL_OF_NONE)),
            crisis=log_in_file(IN_MEMORY, CRISES),
            feedback=log_in_file(IN_MEMORY, FEEDBACK),
            tombstones=Tombstones(),
        )
    ports = replace(ports, store=wrap(ports.store))
    memory = LayersMemory(ports, mode=mode, store_name=store_name, is_anonymous=is_anonymous)
    try:
        await memory.open()
    except BaseException:
        await memory.close()
        raise
    return memory


def _durable_layers(folder: Path, embedder: Embedder | None, make: Callable[..., LayersPorts]) -> LayersPorts:
    with FolderLock(folder).opening() as release:
        return make(
            store=LayersStore(
                layers_database(folder / LAYERS_FILE, model=embedder.model if embedder else MODEL_OF_NONE)
            ),
            crisis=log_in_file(folder / "audit.sqlite3", CRISES),
            feedback=log_in_file(folder / "feedback.sqlite3", FEEDBACK),
            release=release,
            tombstones=Tombstones(folder / FILE),
        )


async def _shared_layers(
    place: PostgresPlace, embedder: Embedder | None, make: Callable[..., LayersPorts]
) -> LayersPorts:
    async with AsyncExitStack() as opened:
        memory = await layers_in_postgres(place, model=embedder.model if embedder else MODEL_OF_NONE)
        opened.push_async_callback(memory.aclose)
        crisis = await log_in_postgres(place.sibling("audit"), CRISES)
        opened.push_async_callback(crisis.aclose)
        feedback = await log_in_postgres(place.sibling("feedback"), FEEDBACK)
        opened.pop_all()
    return make(store=memory, crisis=crisis, feedback=feedback, shared=True)


async def layers_in_postgres(place: PostgresPlace, *, model: str) -> LayersStore:
    """Open the store in `place`; raises as `open_postgres_database` does."""
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.postgres_database_store import open_postgres_database  # noqa: PLC0415
    return LayersStore(await open_postgres_database(place, migrations(), memory=_MEMORY, model=model))


def log_in_file(file: Path, kind: LogKind[R]) -> Log[R]:
    """Open or make the file of a log, or one in memory."""
    return Log(Database(file, schema=kind.schema), kind)


async def log_in_postgres(place: PostgresPlace, kind: LogKind[R]) -> Log[R]:
    """Open a log in its own schema, so that code that reads memory cannot read it."""
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.postgres_database_store import open_postgres_database  # noqa: PLC0415
    database = await open_postgres_database(place, kind.migrations, memory=_MEMORY, model=MODEL_OF_NONE)
    return Log(database, kind)
