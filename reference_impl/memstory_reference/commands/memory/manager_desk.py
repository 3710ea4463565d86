"""The manager memory at the `memory` command."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstory.contract.values import Json
from memstory_reference.commands.memory.desks import Confirm, Desk, DeskAnswer
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS, Row, rows_as_jsonl
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of, make_idle_embedder
from memstory_reference.composition.manager import open_manager
from memstory_reference.composition.vector_stores import is_store
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories.memory import Memory, MemoryType, memory_type_of
from memstory_reference.systems.manager.memories.rows import CONTEXT_KEY
from memstory_reference.systems.manager.settings import ManagerSettings, default_manager, read_manager
from memstory_reference.systems.manager.system import ManagerSystem

DEFAULT_OWNER = "default"
"""The owner of the MCP server too: one memory, however it is reached."""

OF_OTHERS = ("user_id", "thread_id")
_SETTING_OF = {"store": "path", "embedder": "embedding_model", "chat": "chat"}


def chosen_manager(parsed: argparse.Namespace) -> ManagerSettings:
    """Return the settings that were typed: the settings' file first, then each option."""
    settings = read_manager(parsed.settings) if parsed.settings else default_manager()
    typed = {setting: getattr(parsed, option, None) for option, setting in _SETTING_OF.items()}
    changes: dict[str, Json] = {setting: value for setting, value in typed.items() if value is not None}
    return settings.changed(changes, "command line")


def memory_row(owner: str, memory: Memory, score: float | None = None) -> Row:
    """Return a memory as JSON: owner, kind, id, topic (its context key), text, created_at, metadata, perhaps score."""
    row: Row = {
        "owner": owner,
        "kind": memory.memory_type.value,
        "id": memory.id,
        "topic": memory.metadata.get(CONTEXT_KEY) if memory.memory_type is MemoryType.CONTEXT else None,
        "text": memory.content,
        "created_at": memory.created_at.isoformat(),
        "metadata": dict(memory.metadata),
    }
    return row if score is None else {**row, "score": round(score, 6)}


async def memory_named(manager: MemoryManager, owner: str, name: str) -> Memory:
    """Return the memory with this id or beginning of an id; InputError if there is none or more than one."""
    exact = await manager.get(owner, name)
    if exact is not None:
        return exact
    living = await manager.memories(owner) if len(name) >= SHORT_ID_CHARACTERS else []
    fitting = [one for one in living if one.id.startswith(name)]
    if len(fitting) != 1:
        found = f"begins {len(fitting)} ids" if fitting else "is the id of no memory"
        raise InputError(f"{name!r:.80} {found}; give an id, or the first {SHORT_ID_CHARACTERS} or more characters")
    return fitting[0]


@asynccontextmanager
async def manager_desk(parsed: argparse.Namespace) -> AsyncIterator[Desk]:
    """Open the store that was typed; only a search loads the embedding model."""
    refuse_foreign(parsed, OF_OTHERS, "belongs to --system layers; the manager memory has --owner")
    settings, owner = chosen_manager(parsed), checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner)
    if not is_store(settings.folder):
        raise InputError(
            f"{settings.folder}: no memory is stored here. Name its folder with --store, or make one with "
            "'chat --system manager'"
        )
    needs_model = parsed.action == "search"
    embedder = embedder_of(settings) if needs_model else make_idle_embedder(settings.embedding_model)
    system = await open_manager(settings, folder=settings.folder, embedder=embedder, chat=chat_of(settings))
    try:
        yield ManagerDesk(system=system, owner=owner)
    finally:
        await system.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerDesk:
    """One owner's part of an open memory."""

    system: ManagerSystem
    owner: str

    async def listed(self, kind: str | None, *, archived: bool) -> Sequence[Row]:
        if archived:
            raise InputError("--archived belongs to --system layers; the manager memory keeps no archive")
        types = [] if kind is None else [memory_type_of(kind)]
        return [self._row(one) for one in await self._manager.memories(self.owner, types)]

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        found = await self._manager.search(self.owner, text, limit=top_k, min_score=min_score)
        return [memory_row(self.owner, one.memory, one.score) for one in found]

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        found = [await memory_named(self._manager, self.owner, name) for name in names]
        return list({one.id: self._row(one) for one in found}.values())

    async def with_echoes(self, rows: Sequence[Row]) -> Sequence[Row]:
        found = [one for row in rows for one in await self._manager.with_repeats(self.owner, row["id"])]
        return list({one.id: self._row(one) for one in found}.values())

    async def forget(self, ids: Sequence[str]) -> Sequence[str]:
        return [one for one in ids if await self._manager.forget(self.owner, one)]

    async def forget_everything(self, confirm: Confirm) -> DeskAnswer | None:
        rows = await self.listed(None, archived=False)
        if rows and not confirm(rows, None):
            return None
        gone = await self._manager.forget_all(self.owner)
        return DeskAnswer(data=gone, text=str(gone))

    async def export(self) -> DeskAnswer:
        rows = await self.listed(None, archived=False)
        return DeskAnswer(data=len(rows), text=rows_as_jsonl(rows))

    async def status(self) -> DeskAnswer:
        status = await self.system.status(self.owner)
        counts = ", ".join(f"{kind} {status[kind]}" for kind in MemoryType)
        return DeskAnswer(data=dict(status), text=f"{self.owner}: {counts}; embedder {status['embedder']}")

    async def purge(self, days: float | None) -> int:
        if days is not None:
            raise InputError("--days belongs to --system topics; of the manager memory expires what its type says")
        return await self._manager.cleanup_expired()

    async def rate(self, memory_id: str, value: float) -> bool:
        raise InputError("the manager memory knows no ratings; topics do, and observations with 'observations rate'")

    async def move(self, memory_id: str, *, into_use: bool) -> bool:
        raise InputError("the manager memory keeps no archive; layers do, with --system layers")

    def _row(self, memory: Memory) -> Row:
        return memory_row(self.owner, memory)

    @property
    def _manager(self) -> MemoryManager:
        return self.system.manager
