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
from memstory_reference.systems.turns.stores.sqlite_store import SqliteTurns

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.turns.settings import TurnsConfig
    from memstory_reference.systems.turns.stores.store import TurnsStore


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
    store: TurnsStore = (
        open_sqlite_turns(folder, embedder.model)
        if place is None
        else await _shared_turns(place, embedder.model, is_fixed=is_fixed)
    )
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


async def _shared_turns(place: PostgresPlace, model: str, *, is_fixed: bool) -> TurnsStore:
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.schema_store import check_schema  # noqa: PLC0415
        from memstory_reference.systems.turns.stores.postgres_store import (  # noqa: PLC0415
            MIGRATIONS,
            open_postgres_turns,
        )
    if is_fixed:
        await check_schema(place, MIGRATIONS)
    return await open_postgres_turns(place, model=model)


def open_sqlite_turns(folder: Path, model: str) -> SqliteTurns:
    """Open the store in `folder`; StoreConflictError if another process has it, or it holds another model's vectors."""
    with FolderLock(folder).opening() as release:
        return SqliteTurns(folder, model=model, release=release)
