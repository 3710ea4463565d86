"""The observations memory, joined."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.composition.vector_stores import Wrap, drop_damaged, no_wrap, open_store
from memstory_reference.setting_rules import SQLITE
from memstory_reference.storage.tombstones import FILE, NoTombstones, Tombstones
from memstory_reference.systems.observations.observations_store import (
    EMBEDDED_FILE,
    MEMORY,
    MIGRATIONS,
    ObservationsStore,
    observations_in_file,
)
from memstory_reference.systems.observations.service import ObservationService
from memstory_reference.systems.observations.words_store import PostgresWords

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId, VectorStore
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.observations.settings import ObservationsConfig

OBSERVATIONS_FILE = EMBEDDED_FILE.name
VECTORS = "vectors"
"""The folder of the copy of each vector."""


async def open_observations(
    folder: Path,
    *,
    embedder: Embedder,
    chat: ChatModel | None,
    clock: Clock,
    new_id: NewId,
    config: ObservationsConfig,
    wrap: Wrap = no_wrap,
    place: PostgresPlace | None = None,
) -> ObservationService:
    """Open the observations in `place`, else in `folder`, both indexes in step; without a chat model rules summarise.

    Vectors that are damaged are made again: the rows, and a copy of each vector, are in the observations' own file.
    """
    from memstory_reference.adapters.folder_lock import FolderLock  # noqa: PLC0415

    async with AsyncExitStack() as opened:
        lock = FolderLock(folder)
        if place is None:
            opened.enter_context(lock)
            store, vectors = await _in_folder(folder, embedder, config.store, opened)
        else:
            store, vectors = await _in_postgres(place, embedder, opened)
        service = ObservationService(
            rows=store,
            vectors=wrap(vectors),
            embedder=embedder,
            chat=chat,
            clock=clock,
            new_id=new_id,
            config=config,
            tombstones=Tombstones(folder / FILE) if place is None else NoTombstones(),
            release=lock.release,
        )
        await service.open()
        opened.pop_all()
    return service


async def _in_folder(
    folder: Path, embedder: Embedder, engine: str, opened: AsyncExitStack
) -> tuple[ObservationsStore, VectorStore]:
    if engine == SQLITE:
        await asyncio.to_thread(drop_damaged, folder / VECTORS)
    vectors = await open_store(folder / VECTORS, embedder, engine=engine)
    opened.push_async_callback(vectors.close)
    store = observations_in_file(folder / OBSERVATIONS_FILE, model=embedder.model)
    opened.push_async_callback(store.aclose)
    return store, vectors


async def _in_postgres(
    place: PostgresPlace, embedder: Embedder, opened: AsyncExitStack
) -> tuple[ObservationsStore, VectorStore]:
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.adapters.vectors.postgres_rows import open_postgres_vectors  # noqa: PLC0415
        from memstory_reference.storage.postgres.postgres_database_store import open_postgres_database  # noqa: PLC0415

    database = await open_postgres_database(place, MIGRATIONS, memory=MEMORY, model=embedder.model)
    opened.push_async_callback(database.aclose)
    beside = place.sibling(VECTORS)
    vectors = await open_postgres_vectors(
        beside, model=embedder.model, dimension=embedder.dimension, memory=f"vectors of {MEMORY}"
    )
    opened.push_async_callback(vectors.close)
    return ObservationsStore(database, PostgresWords), vectors
