"""The turns memory, joined: its store in a folder of this machine, or in Postgres."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.setting_rules import POSTGRES
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.stores.folder_store import TurnsFolder
from memstory_reference.systems.turns.stores.shared_store import TurnsSchema
from memstory_reference.systems.turns.stores.tables_store import migrations
from memstory_reference.systems.turns.stores.turns_store import TurnsStore

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.turns.settings import TurnsConfig


async def open_turns(
    folder: Path,
    *,
    embedder: Embedder,
    chat: ChatModel,
    clock: Clock,
    new_id: NewId,
    config: TurnsConfig,
    place: PostgresPlace | None = None,
    engine: str | None = None,
    is_fixed: bool = False,
    wrap: Callable[[TurnsStore], TurnsStore] = lambda store: store,
) -> TurnsMemory:
    """Open the turns memory in `folder`, which this process then owns, or in `place`, which many may share.

    `engine` is what a report calls a shared store. With `is_fixed` a schema that would be made or changed by this is
    refused by InputError.
    """
    if place is None:
        store = turns_in_folder(folder, embedder.model)
    else:
        store = await turns_in_postgres(place, embedder.model, is_fixed=is_fixed)
    service = TurnsService(
        store=wrap(store),
        embedder=embedder,
        clock=clock,
        new_id=new_id,
        config=config,
        tombstones=Tombstones(folder / FILE) if place is None else None,
    )
    name = TurnsMemory.in_folder if place is None else engine or POSTGRES
    return TurnsMemory(service, chat=chat, clock=clock, store_name=name)


async def turns_in_postgres(place: PostgresPlace, model: str, *, is_fixed: bool = False) -> TurnsStore:
    """Open the store in `place`; raises as `open_postgres_database` does, and InputError as `open_turns`."""
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.postgres_database_store import open_postgres_database  # noqa: PLC0415
        from memstory_reference.storage.postgres.schema_store import check_schema  # noqa: PLC0415
    if is_fixed:
        await check_schema(place, migrations())
    return TurnsSchema(await open_postgres_database(place, migrations(), memory="turns", model=model))


def turns_in_folder(folder: Path, model: str) -> TurnsStore:
    """Open the store in `folder`; StoreConflictError if another process has it, or it holds another model's vectors."""
    with FolderLock(folder).opening() as release:
        return TurnsFolder(folder, model=model, release=release)
