"""The layers memory, joined: its stores on this machine, in Postgres, or in memory alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.storage.database_store import IN_MEMORY
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.layers.log_entries import CRISES, FEEDBACK
from memstory_reference.systems.layers.ports import LayersPorts, LayersStores
from memstory_reference.systems.layers.recall.retrieval import MODEL_OF_NONE
from memstory_reference.systems.layers.service import LayersService
from memstory_reference.systems.layers.settings import MemoryMode
from memstory_reference.systems.layers.stores.sqlite_log_store import SqliteLog
from memstory_reference.systems.layers.stores.sqlite_rows_store import EMBEDDED_FILE
from memstory_reference.systems.layers.stores.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.systems.layers.settings import LayersConfig
    from memstory_reference.systems.layers.stores.store import LayersStore

LAYERS_FILE = EMBEDDED_FILE.name


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
        stores = LayersStores(
            memory=SqliteStore(IN_MEMORY, model=MODEL_OF_NONE),
            crisis=SqliteLog(IN_MEMORY, CRISES),
            feedback=SqliteLog(IN_MEMORY, FEEDBACK),
            tombstones=Tombstones(),
        )
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
    with FolderLock(folder).opening() as release:
        return LayersStores(
            memory=SqliteStore(folder / LAYERS_FILE, model=embedder.model if embedder else MODEL_OF_NONE),
            crisis=SqliteLog(folder / "audit.sqlite3", CRISES),
            feedback=SqliteLog(folder / "feedback.sqlite3", FEEDBACK),
            release=release,
            tombstones=Tombstones(folder / FILE),
        )


async def _shared_layers(place: PostgresPlace, embedder: Embedder | None) -> LayersStores:
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.systems.layers.stores.postgres.log_store import open_log  # noqa: PLC0415
        from memstory_reference.systems.layers.stores.postgres.postgres_store import open_postgres  # noqa: PLC0415
    async with AsyncExitStack() as opened:
        memory = await open_postgres(place, model=embedder.model if embedder else MODEL_OF_NONE)
        opened.push_async_callback(memory.aclose)
        crisis = await open_log(place.sibling("audit"), CRISES)
        opened.push_async_callback(crisis.aclose)
        feedback = await open_log(place.sibling("feedback"), FEEDBACK)
        opened.pop_all()
    return LayersStores(memory=memory, crisis=crisis, feedback=feedback, shared=True)
