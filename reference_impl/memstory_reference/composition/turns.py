"""The turns memory, joined: its store in a folder of this machine, or in Postgres."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.composition.extras import require_extra
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.stores.sqlite_store import SqliteTurns
from memstory_reference.systems.turns.system import TurnsSystem

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.systems.turns.config import TurnsConfig
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
    wrap: Callable[[TurnsStore], TurnsStore] = lambda store: store,
) -> TurnsSystem:
    """Open the turns memory in `folder`, which this process then owns, or in `place`, which many may share."""
    store: TurnsStore = (
        open_sqlite_turns(folder, embedder.model) if place is None else await _shared_turns(place, embedder.model)
    )
    memory = TurnsService(
        store=wrap(store),
        embedder=embedder,
        clock=clock,
        new_id=new_id,
        config=config,
        tombstones=Tombstones(folder / FILE) if place is None else None,
    )
    return TurnsSystem(memory=memory, chat=chat, clock=clock)


async def _shared_turns(place: PostgresPlace, model: str) -> TurnsStore:
    with require_extra("the driver of Postgres", "psycopg", "postgres"):
        from memstory_reference.systems.turns.stores.postgres_store import open_postgres_turns  # noqa: PLC0415
    return await open_postgres_turns(place, model=model)


def open_sqlite_turns(folder: Path, model: str) -> SqliteTurns:
    """Open the store in `folder`; StoreConflictError if another process has it, or it holds another model's vectors."""
    from memstory_reference.adapters.folder_lock import FolderLock  # noqa: PLC0415

    lock = FolderLock(folder)
    lock.acquire()
    try:
        return SqliteTurns(folder, model=model, release=lock.release)
    except BaseException:
        lock.release()
        raise
