"""The turns memory, joined: its store in a folder of this machine, or in Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.composition.declaration import MemoryPorts, MemorySystem, closing_on_failure
from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.stores import owner_store
from memstory_reference.systems.turns.stores.owner_store import MATRIX
from memstory_reference.systems.turns.stores.sqlite_store import EMBEDDED_OWNERS, SqliteTurns

if TYPE_CHECKING:
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.turns.stores.store import TurnsStore


async def open_turns(settings: TurnsSettings, ports: MemoryPorts) -> TurnsMemory:
    """Open the turns memory in its folder, which this process then owns, or in Postgres, which many may share."""
    place, model = ports.place_of(settings), ports.embedder.model
    store = await _shared_turns(place, model) if place else open_sqlite_turns(settings.folder, model)
    async with closing_on_failure(store.close):
        service = TurnsService(
            store=ports.wrap(store),
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            config=settings,
            tombstones=None if place else Tombstones(settings.folder / FILE),
        )
    name = place.name if place else TurnsMemory.in_folder
    return TurnsMemory(service, chat=ports.chat, clock=ports.clock, store_name=name)


async def check_shared_turns(place: PostgresPlace) -> None:
    """Raise InputError if the schema in `place` would be made or changed by being opened."""
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.schema_store import check_schema  # noqa: PLC0415
        from memstory_reference.systems.turns.stores.postgres_store import MIGRATIONS  # noqa: PLC0415
    await check_schema(place, MIGRATIONS)


async def _shared_turns(place: PostgresPlace, model: str) -> TurnsStore:
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.systems.turns.stores.postgres_store import open_postgres_turns  # noqa: PLC0415
    return await open_postgres_turns(place, model=model)


def open_sqlite_turns(folder: Path, model: str) -> SqliteTurns:
    """Open the store in `folder`; StoreConflictError if another process has it, or it holds another model's vectors."""
    with FolderLock(folder).opening() as release:
        return SqliteTurns(folder, model=model, release=release)


TURNS = MemorySystem(
    name="turns",
    kind=TurnsSettings,
    memory=TurnsMemory,
    opener=open_turns,
    files=[owner_store.EMBEDDED_FILE, EMBEDDED_OWNERS],
    derived=[MATRIX],
)
