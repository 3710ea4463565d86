"""The observations memory, joined."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.composition.vector_stores import Wrap, drop_damaged, no_wrap, open_store
from memstory_reference.setting_rules import SQLITE
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.observations.observations_store import EMBEDDED_FILE
from memstory_reference.systems.observations.service import ObservationService

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
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
) -> ObservationService:
    """Open the observations in `folder`, both indexes in step; without a chat model they are summarised by rules.

    Vectors that are damaged are made again: the rows, and a copy of each vector, are in the observations' own file.
    """
    from memstory_reference.adapters.folder_lock import FolderLock  # noqa: PLC0415

    async with AsyncExitStack() as opened:
        opened.enter_context(lock := FolderLock(folder))
        if config.store == SQLITE:
            await asyncio.to_thread(drop_damaged, folder / VECTORS)
        store = await open_store(folder / VECTORS, embedder, engine=config.store)
        opened.push_async_callback(store.close)
        service = ObservationService(
            file=folder / OBSERVATIONS_FILE,
            vectors=wrap(store),
            embedder=embedder,
            chat=chat,
            clock=clock,
            new_id=new_id,
            config=config,
            tombstones=Tombstones(folder / FILE),
            release=lock.release,
        )
        await service.open()
        opened.pop_all()
    return service
