"""The topics memory at the `memory` command."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstory_reference.commands.chosen_settings import chosen_settings
from memstory_reference.commands.memory.desks import Confirm, Desk, DeskAnswer
from memstory_reference.commands.memory_rows import Row, row_of, rows_as_jsonl
from memstory_reference.commands.opened_memory import OpenedMemory, entry_named, open_memory
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.commands.terminal_text import cell
from memstory_reference.composition.embedders import embedder_of, make_idle_embedder
from memstory_reference.errors import InputError
from memstory_reference.systems.topics.memory_service import EPISODIC, TOPIC

OF_LAYERS = ("user_id", "thread_id")
KINDS = (TOPIC, EPISODIC)


@asynccontextmanager
async def topics_desk(parsed: argparse.Namespace) -> AsyncIterator[Desk]:
    """Open the store that was typed; only a search loads the embedding model."""
    refuse_foreign(parsed, OF_LAYERS, "belongs to --system layers; the topics memory has --owner")
    refuse_foreign(parsed, ("archived",), "belongs to --system layers; the topics memory keeps no archive")
    kind = getattr(parsed, "kind", None)
    if kind not in (None, *KINDS):
        raise InputError(f"--kind {kind} belongs to --system layers; topics have {', '.join(KINDS)}")
    settings = chosen_settings(parsed)
    needs_model = parsed.action == "search"
    memory = await open_memory(
        settings, embedder_of(settings) if needs_model else make_idle_embedder(settings.embedding_model)
    )
    try:
        yield TopicsDesk(memory=memory, owner=parsed.owner)
    finally:
        await memory.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsDesk:
    """An open store; `owner` is who was typed."""

    memory: OpenedMemory
    owner: str | None

    async def listed(self, kind: str | None, *, archived: bool) -> Sequence[Row]:
        return await self._rows(self.memory.all_of(self.owner), kind)

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        owner = self.memory.of(self.owner)
        found = await self.memory.service.search_episodic(owner, text, top_k, min_score=min_score)
        return [row_of(owner, one) for one in found]

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        owner = self.memory.of(self.owner)
        entries = [await entry_named(self.memory.service, owner, name) for name in names]
        return list({entry.id: row_of(owner, entry) for entry in entries}.values())

    async def with_echoes(self, rows: Sequence[Row]) -> Sequence[Row]:
        owner = self.memory.of(self.owner)
        found = [await self.memory.service.held(owner, row["id"]) for row in rows]
        entries = [one for each in found if each for one in (each.entry, *each.topics, *each.engrams)]
        return list({one.id: row_of(owner, one) for one in entries}.values())

    async def forget(self, ids: Sequence[str]) -> Sequence[str]:
        owner = self.memory.of(self.owner)
        return [one for one in ids if await self.memory.service.forget(owner, one)]

    async def forget_everything(self, confirm: Confirm) -> DeskAnswer | None:
        rows = await self._rows([self.memory.of(self.owner)])
        if rows and not confirm(rows, None):
            return None
        gone = await self.forget([row["id"] for row in rows])
        return DeskAnswer(data=gone, text=str(len(gone)))

    async def export(self) -> DeskAnswer:
        rows = await self._rows(self.memory.all_of(self.owner))
        return DeskAnswer(data=len(rows), text=rows_as_jsonl(rows))

    async def status(self) -> DeskAnswer:
        service = self.memory.service
        counts = {
            owner: {"topics": await service.count(owner, TOPIC), "episodic": await service.count(owner, EPISODIC)}
            for owner in self.memory.all_of(self.owner)
        }
        lines = [f"{cell(owner)}: topics {n['topics']}, engrams {n['episodic']}" for owner, n in counts.items()]
        return DeskAnswer(data=counts, text="\n".join(lines) or "Nothing is remembered.")

    async def purge(self, days: float | None) -> int:
        return sum([await self.memory.service.purge(owner, days) for owner in self.memory.all_of(self.owner)])

    async def rate(self, memory_id: str, value: float) -> bool:
        return await self.memory.service.reward(self.memory.of(self.owner), memory_id, value)

    async def move(self, memory_id: str, *, into_use: bool) -> bool:
        raise InputError("the topics memory keeps no archive; layers do, with --system layers")

    async def _rows(self, owners: Sequence[str], kind: str | None = None) -> list[Row]:
        rows: list[Row] = []
        for owner in owners:
            topics = await self.memory.service.list_topics(owner) if kind != EPISODIC else []
            engrams = await self.memory.service.list_engrams(owner) if kind != TOPIC else []
            rows += [row_of(owner, topic) for topic in topics]
            rows += [row_of(owner, engram) for engram in engrams]
        return rows
