"""The turns memory, joined: its store in a folder of this machine, or in Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.composition.declaration import MemoryPorts, MemorySystem, opening
from memstory_reference.composition.extras import POSTGRES_DRIVER, open_shared_database, require_extra
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.stores.tables_store import EMBEDDED_FILE, migrations
from memstory_reference.systems.turns.stores.turns_store import (
    EMBEDDED_OWNERS,
    MATRIX,
    TurnsFolder,
    TurnsSchema,
    TurnsStore,
)

if TYPE_CHECKING:
    from memstory_reference.storage.postgres.place import PostgresPlace


async def open_turns(settings: TurnsSettings, ports: MemoryPorts) -> TurnsMemory:
    """Open the turns memory in its folder, which this process then owns, or in Postgres, which many may share."""
    place, model = ports.place_of(settings), ports.embedder.model
    async with opening() as opened:
        store = await turns_in_postgres(place, model) if place else turns_in_folder(settings.folder, model)
        opened.push_async_callback(store.close)
        service = TurnsService(
            store=ports.wrap(store),
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            config=settings,
            tombstones=ports.tombstones(settings, opened),
        )
        name = place.name if place else TurnsMemory.in_folder
        return TurnsMemory(service, chat=ports.chat, clock=ports.clock, store_name=name)


async def check_shared_turns(place: PostgresPlace) -> None:
    """Raise InputError if the schema in `place` would be made or changed by being opened."""
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.postgres_database import check_schema  # noqa: PLC0415
    await check_schema(place, migrations())


async def turns_in_postgres(place: PostgresPlace, model: str) -> TurnsStore:
    """Open the store in `place`; raises as `open_postgres_database` does."""
    return TurnsSchema(await open_shared_database(place, migrations(), memory="turns", model=model))


def turns_in_folder(folder: Path, model: str) -> TurnsStore:
    """Open the store in `folder`; StoreConflictError if another process has it, or it holds another model's vectors."""
    with FolderLock(folder).opening() as release:
        return TurnsFolder(folder, model=model, release=release)


TURNS = MemorySystem(
    name="turns",
    kind=TurnsSettings,
    memory=TurnsMemory,
    opener=open_turns,
    files=[EMBEDDED_FILE, EMBEDDED_OWNERS],
    derived=[MATRIX],
)
