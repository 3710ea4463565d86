"""`memstory-reference memory … --system layers`: what an owner may see, change and take along."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.commands.chat.layers_conversation import status_line
from memstory_reference.commands.layers_options import chosen_layers, refuse_foreign
from memstory_reference.commands.memory.layers_rows import row_of_ranked, row_of_record
from memstory_reference.commands.memory.printed import (
    is_confirmed,
    is_yes,
    print_rows,
    print_text,
    write_new,
)
from memstory_reference.commands.memory_rows import Row, page
from memstory_reference.commands.opened_layers import open_stored_layers
from memstory_reference.commands.opened_memory import SHORT_ID_CHARACTERS
from memstory_reference.commands.terminal_text import json_text
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.service import LayersService

NOTHING_DONE = 1
OF_TOPICS = ("owner", "min_score")
STANDINGS = tuple(Standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """An open memory, and whose part of it is meant."""

    service: LayersService
    owner: str
    parsed: argparse.Namespace

    async def all(self, standings: Sequence[Standing] = STANDINGS) -> list[MemoryRecord]:
        """Return the owner's records."""
        return await self.service.records.listed(self.owner, standings=standings)

    async def named(self, names: Sequence[str]) -> list[MemoryRecord]:
        """Return the records with these ids or beginnings of ids, all or an InputError."""
        records = await self.all()
        return list({one.id: one for one in (_named(records, name) for name in names)}.values())


async def list_records(desk: Desk) -> int:
    """Print the records of one layer or of all."""
    layers = [_layer(desk.parsed.kind)] if desk.parsed.kind else tuple(Layer)
    standings = STANDINGS if desk.parsed.archived else (Standing.ACTIVE,)
    records = await desk.service.records.listed(desk.owner, layers, standings)
    _print_rows(desk, [row_of_record(one) for one in records], "Nothing is remembered.")
    return 0


async def search_records(desk: Desk) -> int:
    """Print what a question finds, best first."""
    found = await desk.service.records.search(desk.owner, desk.parsed.text)
    _print_rows(desk, [row_of_ranked(one) for one in found[: desk.parsed.top_k]], "No memories found.")
    return 0


async def show_record(desk: Desk) -> int:
    """Print one record in full."""
    (record,) = await desk.named([desk.parsed.name])
    row = row_of_record(record)
    print_text(json_text(row, indent=2) if desk.parsed.json else page(row))
    return 0


async def forget_records(desk: Desk) -> int:
    """Delete what is named, or all that is kept of the owner; without a yes nothing is deleted."""
    if desk.parsed.everything == bool(desk.parsed.names):
        raise InputError("memory forget: name what to forget, or say --all")
    if desk.parsed.everything:
        return await _forget_owner(desk)
    records = await desk.named(desk.parsed.names)
    if not (desk.parsed.yes or is_confirmed([row_of_record(one) for one in records])):
        return _nothing_done()
    gone = await desk.service.records.delete(desk.owner, [one.id for one in records])
    print_text(json_text({"forgotten": gone}) if desk.parsed.json else f"Forgotten: {len(gone)}.")
    return 0


async def export_records(desk: Desk) -> int:
    """Write all that is remembered of the owner as one JSON document, active sessions too."""
    exported = await desk.service.records.export(desk.owner)
    text = json_text(exported, indent=2) + "\n"
    if desk.parsed.output is None:
        sys.stdout.write(text)
        return 0
    write_new(desk.parsed.output, text)
    number = len(exported["records"])
    print_text(json_text({"exported": number}) if desk.parsed.json else f"Exported: {number} to {desk.parsed.output}.")
    return 0


async def archive_records(desk: Desk) -> int:
    """Take records out of every prompt and search, without deleting them."""
    return await _move(desk, desk.service.records.archive, "archived", "is not active")


async def restore_records(desk: Desk) -> int:
    """Bring archived records back."""
    return await _move(desk, desk.service.records.restore, "restored", "is not archived")


async def print_status(desk: Desk) -> int:
    """Print how much is remembered, by the labels that people read."""
    status = await desk.service.status(desk.owner)
    if desk.parsed.json:
        print_text(json_text(status, indent=2))
        return 0
    moved = f"archived {status['archived']}, superseded {status['superseded']}"
    print_text(f"{status_line(status)}\n{moved}; active sessions {status['active_sessions']}")
    return 0


Action = Callable[[Desk], Awaitable[int]]
ACTIONS: Mapping[str, Action] = {
    "list": list_records,
    "search": search_records,
    "show": show_record,
    "forget": forget_records,
    "delete": forget_records,
    "export": export_records,
    "archive": archive_records,
    "restore": restore_records,
    "status": print_status,
}


def run(parsed: argparse.Namespace) -> int:
    """Do what was typed with the layers of the owner who was typed."""
    refuse_foreign(parsed, OF_TOPICS, "belongs to the topics memory; layers have --user-id and --thread-id")
    if parsed.user_id is None and parsed.thread_id is None:
        raise InputError(
            f"memory {parsed.action}: say whose with --user-id, or with --thread-id for a conversation without a user"
        )
    return asyncio.run(_run(parsed))


async def _run(parsed: argparse.Namespace) -> int:
    service = await open_stored_layers(chosen_layers(parsed))
    try:
        who = await service.who(parsed.user_id, parsed.thread_id)
        return await ACTIONS[parsed.action](Desk(service=service, owner=who.owner, parsed=parsed))
    finally:
        await service.close()


async def _forget_owner(desk: Desk) -> int:
    records, status = await desk.all(), await desk.service.status(desk.owner)
    question = (
        f"Forget all of {desk.parsed.user_id or desk.parsed.thread_id} for good: {len(records)} records, "
        f"{status['active_sessions']} active sessions, and feedback? [y/N] "
    )
    if not (desk.parsed.yes or is_yes(question)):
        return _nothing_done()
    counts = await desk.service.forget_owner(desk.owner)
    said = ", ".join(f"{what} {number}" for what, number in counts.items())
    print_text(json_text({"forgotten": dict(counts)}) if desk.parsed.json else f"Forgotten: {said}.")
    return 0


async def _move(desk: Desk, move: Callable[[str, str], Awaitable[bool]], done: str, why_not: str) -> int:
    records = await desk.named(desk.parsed.names)
    moved = [one.id for one in records if await move(desk.owner, one.id)]
    for one in records:
        if one.id not in moved:
            sys.stderr.write(f"{one.id[:SHORT_ID_CHARACTERS]} {why_not}; nothing was done with it\n")
    print_text(json_text({done: moved}) if desk.parsed.json else f"{done.capitalize()}: {len(moved)}.")
    return 0 if len(moved) == len(records) else NOTHING_DONE


def _nothing_done() -> int:
    sys.stderr.write("Nothing was forgotten.\n")
    return NOTHING_DONE


def _print_rows(desk: Desk, rows: Sequence[Row], for_none: str) -> None:
    print_rows(rows, is_json=desk.parsed.json, for_none=for_none)


def _layer(kind: str) -> Layer:
    if kind not in set(Layer):
        raise InputError(f"--kind {kind} belongs to the topics memory; layers have {', '.join(Layer)}")
    return Layer(kind)


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
