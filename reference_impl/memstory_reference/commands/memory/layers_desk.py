"""The layers memory at the `memory` command."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstory.contract.values import Tree
from memstory_reference.commands.chosen_settings import chosen_layers
from memstory_reference.commands.memory.desks import Confirm, Desk, DeskAnswer
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS, Row
from memstory_reference.commands.opened_layers import open_stored_layers
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.commands.terminal_text import json_text
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.records.entries import entry_of, format_working_memory_entries
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.service import LayersService

OF_TOPICS = ("owner", "min_score")
STANDINGS = tuple(Standing)


@asynccontextmanager
async def layers_desk(parsed: argparse.Namespace) -> AsyncIterator[Desk]:
    """Open the memory that was typed, at the owner who was typed."""
    refuse_foreign(parsed, OF_TOPICS, "belongs to the topics memory; layers have --user-id and --thread-id")
    if parsed.user_id is None and parsed.thread_id is None:
        raise InputError(
            f"memory {parsed.action}: say whose with --user-id, or with --thread-id for a conversation without a user"
        )
    service = await open_stored_layers(chosen_layers(parsed))
    try:
        who = await service.who(parsed.user_id, parsed.thread_id)
        yield LayersDesk(service=service, owner=who.owner, name=parsed.user_id or parsed.thread_id)
    finally:
        await service.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersDesk:
    """An open memory; `name` is what the owner was typed as."""

    service: LayersService
    owner: str
    name: str

    async def listed(self, kind: str | None, *, archived: bool) -> Sequence[Row]:
        if kind not in (None, *Layer):
            raise InputError(f"--kind {kind} belongs to the topics memory; layers have {', '.join(Layer)}")
        layers = tuple(Layer) if kind is None else (Layer(kind),)
        standings = STANDINGS if archived else (Standing.ACTIVE,)
        return [row_of_record(one) for one in await self.service.records.listed(self.owner, layers, standings)]

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        found = await self.service.records.search(self.owner, text, limit=top_k)
        return [{**row_of_record(one.record), "score": round(one.score, 6)} for one in found]

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        records = await self.service.records.listed(self.owner, standings=STANDINGS)
        found = {one.id: one for one in (_named(records, name) for name in names)}
        return [row_of_record(one) for one in found.values()]

    async def with_echoes(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows

    async def forget(self, ids: Sequence[str]) -> Sequence[str]:
        return [one.id for one in (await self.service.forget_records(self.owner, ids)).records]

    async def forget_everything(self, confirm: Confirm) -> DeskAnswer | None:
        records = await self.service.records.listed(self.owner, standings=STANDINGS)
        status = await self.service.status(self.owner)
        question = (
            f"Forget all of {self.name} for good: {len(records)} records, "
            f"{status['active_sessions']} active sessions, and feedback? [y/N] "
        )
        if not confirm((), question):
            return None
        counts = await self.service.forget_owner(self.owner)
        return DeskAnswer(data=dict(counts), text=", ".join(f"{what} {number}" for what, number in counts.items()))

    async def export(self) -> DeskAnswer:
        exported = await self.service.records.export(self.owner)
        return DeskAnswer(data=len(exported["records"]), text=json_text(exported, indent=2) + "\n")

    async def status(self) -> DeskAnswer:
        status = await self.service.status(self.owner)
        moved = f"archived {status['archived']}, superseded {status['superseded']}"
        text = f"{status_line(status)}\n{moved}; active sessions {status['active_sessions']}"
        return DeskAnswer(data=status, text=text)

    async def purge(self, days: float | None) -> int:
        if days is not None:
            raise InputError("--days belongs to the topics memory; of layers set crisis_retention_days in the settings")
        return await self.service.purge_crisis_log()

    async def rate(self, memory_id: str, value: float) -> bool:
        raise InputError("memory rate is for the topics memory; layers take feedback on a session")

    async def move(self, memory_id: str, *, into_use: bool) -> bool:
        records = self.service.records
        return await (records.restore if into_use else records.archive)(self.owner, memory_id)


def row_of_record(record: MemoryRecord) -> Row:
    """Return a record as JSON; `kind` is its layer, the text is the line that a prompt would have."""
    line = format_working_memory_entries([entry_of(record)])
    metadata = {"count": record.count, "standing": str(record.standing)}
    return {
        "owner": record.owner,
        "kind": str(record.layer),
        "id": record.id,
        "topic": None,
        "text": line if record.standing is Standing.ACTIVE else f"({record.standing}) {line}",
        "created_at": iso_now(record.created_at),
        "metadata": metadata if record.superseded_by is None else {**metadata, "superseded_by": record.superseded_by},
    }


def _named(records: Sequence[MemoryRecord], name: str) -> MemoryRecord:
    found = [one for one in records if one.id == name]
    if not found and len(name) >= SHORT_ID_CHARACTERS:
        found = [one for one in records if one.id.startswith(name)]
    if len(found) > 1:
        raise InputError(f"{name!r:.80} begins several ids: {', '.join(one.id for one in found[:3])}, …")
    if not found:
        raise InputError(
            f"this owner has no record {name!r:.80}; 'memory list --archived' shows all ids, of which the first "
            f"{SHORT_ID_CHARACTERS} characters do"
        )
    return found[0]


def status_line(status: Mapping[str, Tree]) -> str:
    """Return what people read of a status: counts by their labels, what waits, mode and embedder."""
    counts, labels = status["counts"], status["labels"]
    remembered = ", ".join(f"{label} {counts[layer]}" for layer, label in labels.items())
    sync = f", sync {status['sync']}" if status["mode"] == "synced" else ""
    damage = "".join(f"; {name} {status[name]}" for name in ("damaged", "unreadable") if status[name])
    return f"{remembered}; held {status['held']}; mode {status['mode']}{sync}; embedder {status['embedder']}{damage}"
