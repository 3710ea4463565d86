"""The pipeline memory at the `memory` command."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstory_reference.commands.memory.desks import Confirm, Desk, DeskAnswer
from memstory_reference.commands.memory.opened_pipeline import (
    check_is_stored,
    chosen_pipeline,
    chunk_named,
    row_of_chunk,
)
from memstory_reference.commands.memory_rows import Row, rows_as_jsonl
from memstory_reference.commands.options import DEFAULT_OWNER, refuse_foreign
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of, make_idle_embedder
from memstory_reference.composition.pipeline import open_pipeline_system
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.systems.pipeline.memory_tools import memory_with_repeats
from memstory_reference.systems.pipeline.service import PipelineService

OF_OTHERS = ("user_id", "thread_id", "min_score")
MOST_FOUND = 5


@asynccontextmanager
async def pipeline_desk(parsed: argparse.Namespace) -> AsyncIterator[Desk]:
    """Open the memory that was typed, at the owner who was typed."""
    refuse_foreign(parsed, OF_OTHERS, "belongs to another memory; the pipeline has --owner")
    settings = chosen_pipeline(parsed)
    check_is_stored(settings)
    needs_model = parsed.action == "search"
    embedder = embedder_of(settings) if needs_model else make_idle_embedder(settings.embedding_model)
    system = await open_pipeline_system(settings, embedder=embedder, chat=chat_of(settings))
    try:
        yield PipelineDesk(
            memory=system.memory, owner=checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner)
        )
    finally:
        await system.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDesk:
    """An open memory of one owner."""

    memory: PipelineService
    owner: str

    async def listed(self, kind: str | None, *, archived: bool) -> Sequence[Row]:
        found = await self.memory.memories(self.owner, [kind] if kind else None, include_replaced=archived)
        return [row_of_chunk(one) for one in found if archived or not one.is_archived]

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        result = await self.memory.recall(text, self.owner, MOST_FOUND if top_k is None else top_k, by_score=True)
        return [{**row_of_chunk(one.memory), "score": round(one.score or 0.0, 6)} for one in result.memories]

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        found = [await chunk_named(self.memory, self.owner, name) for name in names]
        return list({one.id: row_of_chunk(one) for one in found}.values())

    async def with_echoes(self, rows: Sequence[Row]) -> Sequence[Row]:
        found = [one for row in rows for one in await memory_with_repeats(self.memory, self.owner, row["id"])]
        return list({one.id: row_of_chunk(one) for one in found}.values())

    async def forget(self, ids: Sequence[str]) -> Sequence[str]:
        return await self.memory.delete(ids, self.owner)

    async def forget_everything(self, confirm: Confirm) -> DeskAnswer | None:
        rows = await self.listed(None, archived=True)
        if rows and not confirm(rows, None):
            return None
        gone = await self.memory.forget(self.owner)
        return DeskAnswer(data=gone, text=str(gone))

    async def export(self) -> DeskAnswer:
        rows = await self.memory.export_rows(self.owner)
        return DeskAnswer(data=len(rows), text=rows_as_jsonl(rows))

    async def status(self) -> DeskAnswer:
        counts = await self.memory.status(self.owner)
        return DeskAnswer(data=counts, text=", ".join(f"{name} {number}" for name, number in counts.items()))

    async def purge(self, days: float | None) -> int:
        raise InputError("the pipeline keeps what it archived; forget memories by name, or all with --all")

    async def rate(self, memory_id: str, value: float) -> bool:
        raise InputError("the pipeline has no ratings; it weighs memories by its own rules")

    async def move(self, memory_id: str, *, into_use: bool) -> bool:
        raise InputError("the pipeline archives by itself, when it writes a summary; forget the summary to undo it")
