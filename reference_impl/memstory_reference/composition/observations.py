"""The observations memory, joined."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.composition.declaration import MemoryPorts, MemorySystem, opening
from memstory_reference.composition.extras import open_shared_database
from memstory_reference.composition.vector_stores import drop_damaged, open_exact_schema, open_store
from memstory_reference.setting_rules import SQLITE
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.observations_store import (
    EMBEDDED_FILE,
    MEMORY,
    MIGRATIONS,
    ObservationsStore,
    PostgresWords,
    observations_in_file,
)
from memstory_reference.systems.observations.settings import ObservationsSettings

if TYPE_CHECKING:
    from memstory_reference.ports import Embedder, VectorStore
    from memstory_reference.storage.postgres.place import PostgresPlace

VECTORS = "vectors"
"""The folder of the copy of each vector."""


async def open_observations(settings: ObservationsSettings, ports: MemoryPorts) -> ObservationsMemory:
    """Open the observations, both indexes in step; without a language model rules summarise.

    Vectors that are damaged are made again: the rows, and a copy of each vector, are in the observations' own file.
    """
    place, folder = ports.place_of(settings), settings.folder
    async with opening() as opened:
        lock = FolderLock(folder)
        if place is None:
            opened.enter_context(lock)
            store, vectors = await _in_folder(folder, ports.embedder, settings.store, opened)
        else:
            store, vectors = await _in_postgres(place, ports.embedder, opened)
        memory = ObservationsMemory(
            rows=store,
            vectors=ports.wrap(vectors),
            embedder=ports.embedder,
            chat=ports.model,
            clock=ports.clock,
            new_id=ports.new_id,
            config=settings,
            engine=ports.store_name(settings),
            tombstones=ports.tombstones(settings, opened),
            release=lock.release,
        )
        await memory.open()
        return memory


async def _in_folder(
    folder: Path, embedder: Embedder, engine: str, opened: AsyncExitStack
) -> tuple[ObservationsStore, VectorStore]:
    if engine == SQLITE:
        await asyncio.to_thread(drop_damaged, folder / VECTORS)
    vectors = await open_store(folder / VECTORS, embedder, engine=engine)
    opened.push_async_callback(vectors.close)
    store = observations_in_file(folder / EMBEDDED_FILE.name, model=embedder.model)
    opened.push_async_callback(store.aclose)
    return store, vectors


async def _in_postgres(
    place: PostgresPlace, embedder: Embedder, opened: AsyncExitStack
) -> tuple[ObservationsStore, VectorStore]:
    database = await open_shared_database(place, MIGRATIONS, memory=MEMORY, model=embedder.model)
    opened.push_async_callback(database.aclose)
    vectors = await open_exact_schema(
        place.sibling(VECTORS), model=embedder.model, dimension=embedder.dimension, memory=f"vectors of {MEMORY}"
    )
    opened.push_async_callback(vectors.close)
    return ObservationsStore(database, PostgresWords), vectors


OBSERVATIONS = MemorySystem(
    name="observations",
    kind=ObservationsSettings,
    memory=ObservationsMemory,
    opener=open_observations,
    files=[EMBEDDED_FILE],
    derived=[VECTORS],
    has_rules=True,
)
