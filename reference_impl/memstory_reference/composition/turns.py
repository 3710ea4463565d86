"""The turns memory, joined: its store in a folder of this machine, or in Postgres."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.systems.turns.service import TurnsMemory
from memstory_reference.systems.turns.stores.sqlite_store import SqliteTurns
from memstory_reference.systems.turns.system import TurnsSystem

if TYPE_CHECKING:
    from memstory_reference.ports import ChatModel, Clock, Embedder, NewId
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
    wrap: Callable[[TurnsStore], TurnsStore] = lambda store: store,
) -> TurnsSystem:
    """Open the turns memory in `folder`, which this process then owns."""
    store = wrap(open_sqlite_turns(folder, embedder.model))
    memory = TurnsMemory(store=store, embedder=embedder, clock=clock, new_id=new_id, config=config)
    return TurnsSystem(memory=memory, chat=chat, clock=clock)


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
