"""`memstory-reference memory`: look at what is remembered, export it, have it forgotten."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from memstory_reference.commands.chosen_settings import chosen_settings
from memstory_reference.commands.memory.desks import Desk
from memstory_reference.commands.memory.layers_desk import layers_desk
from memstory_reference.commands.memory.manager_desk import manager_desk
from memstory_reference.commands.memory.pipeline_desk import pipeline_desk
from memstory_reference.commands.memory.printed import is_confirmed, is_yes, print_rows, print_text, write_new
from memstory_reference.commands.memory.topics_desk import topics_desk
from memstory_reference.commands.memory.turns_desk import import_turns, turns_desk
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS, Row, row_page
from memstory_reference.commands.options import LAYERS, MANAGER, PIPELINE, TOPICS, TURNS
from memstory_reference.commands.terminal_text import json_text
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.vector_stores import reindex_store
from memstory_reference.errors import InputError

NOTHING_DONE = 1

Action = Callable[[argparse.Namespace, Desk], Awaitable[int]]
DESKS: Mapping[str, Callable[[argparse.Namespace], AbstractAsyncContextManager[Desk]]] = {
    TOPICS: topics_desk,
    LAYERS: layers_desk,
    TURNS: turns_desk,
    MANAGER: manager_desk,
    PIPELINE: pipeline_desk,
}


async def list_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print all of an owner's memories, or all owners'."""
    rows = await desk.listed(parsed.kind, archived=bool(parsed.archived))
    print_rows(rows, is_json=parsed.json, for_none="Nothing is remembered.")
    return 0


async def search_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print what a text finds, best first."""
    rows = await desk.search(parsed.text, parsed.top_k, parsed.min_score)
    print_rows(rows, is_json=parsed.json, for_none="No memories found.")
    return 0


async def show_memory(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print one memory in full."""
    (row,) = await desk.named([parsed.name])
    print_text(json_text(row, indent=2) if parsed.json else row_page(row))
    return 0


async def forget_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Delete what is named, all of it or nothing; without a yes nothing is deleted."""
    if parsed.everything == bool(parsed.names):
        raise InputError("memory forget: name what to forget, or say --all")

    def confirm(rows: Sequence[Row], question: str | None = None) -> bool:
        return parsed.yes or (is_yes(question) if question else is_confirmed(rows))

    if parsed.everything:
        gone = await desk.forget_everything(confirm)
        if gone is not None:
            print_text(json_text({"forgotten": gone.data}) if parsed.json else f"Forgotten: {gone.text}.")
            return 0
    else:
        rows = await desk.with_echoes(await desk.named(parsed.names))
        if confirm(rows):
            ids = list(await desk.forget([row["id"] for row in rows]))
            print_text(json_text({"forgotten": ids}) if parsed.json else f"Forgotten: {len(ids)}.")
            return 0
    sys.stderr.write("Nothing was forgotten.\n")
    return NOTHING_DONE


async def export_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Write all that is remembered of the owner."""
    exported = await desk.export()
    if parsed.output is None:
        sys.stdout.write(exported.text)
        return 0
    write_new(parsed.output, exported.text)
    number = exported.data
    print_text(json_text({"exported": number}) if parsed.json else f"Exported: {number} to {parsed.output}.")
    return 0


async def import_memories(parsed: argparse.Namespace) -> int:
    """Add the turns of a file."""
    if parsed.system != TURNS:
        raise InputError("memory import is for the turns memory: say --system turns")
    number = await import_turns(parsed)
    print_text(json_text({"imported": number}) if parsed.json else f"Imported: {number} from {parsed.file}.")
    return 0


async def print_status(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print how much is remembered."""
    status = await desk.status()
    print_text(json_text(status.data, indent=2) if parsed.json else status.text)
    return 0


async def move_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Take memories out of use without deleting them, or use them again."""
    is_back = parsed.action == "restore"
    done, why_not = ("restored", "is not archived") if is_back else ("archived", "is not active")
    ids = [row["id"] for row in await desk.named(parsed.names)]
    moved = [one for one in ids if await desk.move(one, into_use=is_back)]
    for one in ids:
        if one not in moved:
            sys.stderr.write(f"{one[:SHORT_ID_CHARACTERS]} {why_not}; nothing was done with it\n")
    print_text(json_text({done: moved}) if parsed.json else f"{done.capitalize()}: {len(moved)}.")
    return 0 if len(moved) == len(ids) else NOTHING_DONE


async def purge_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Delete what is too old; topics stay."""
    number = await desk.purge(parsed.days)
    print_text(json_text({"purged": number}) if parsed.json else f"Purged: {number}.")
    return 0


async def rate_memory(parsed: argparse.Namespace, desk: Desk) -> int:
    """Rate one memory."""
    (row,) = await desk.named([parsed.name])
    is_rated = await desk.rate(row["id"], parsed.value)
    print_text(json_text({"rated": is_rated}) if parsed.json else "Rated.")
    return 0


async def reindex_memories(parsed: argparse.Namespace) -> int:
    """Embed all texts of a store by the model of the settings."""
    if parsed.system != TOPICS:
        raise InputError("memory reindex is for the topics memory")
    settings = chosen_settings(parsed)
    if settings.chroma_server is not None:
        raise InputError("memory reindex works on a folder, not on a Chroma server; export there and save again")
    number = await reindex_store(Path(settings.chroma_path), embedder_of(settings))
    print_text(json_text({"reindexed": number}) if parsed.json else f"Embedded again: {number}.")
    return 0


ACTIONS: Mapping[str, Action] = {
    "list": list_memories,
    "search": search_memories,
    "show": show_memory,
    "forget": forget_memories,
    "export": export_memories,
    "purge": purge_memories,
    "rate": rate_memory,
    "status": print_status,
    "archive": move_memories,
    "restore": move_memories,
}
OF_ONE_SYSTEM: Mapping[str, Callable[[argparse.Namespace], Awaitable[int]]] = {
    "import": import_memories,
    "reindex": reindex_memories,
}
"""What is done without a desk, for not every memory can."""


def run(parsed: argparse.Namespace) -> int:
    """Do what was typed."""
    return asyncio.run(_do(parsed))


async def _do(parsed: argparse.Namespace) -> int:
    if parsed.action in OF_ONE_SYSTEM:
        return await OF_ONE_SYSTEM[parsed.action](parsed)
    async with DESKS[parsed.system](parsed) as desk:
        return await ACTIONS[parsed.action](parsed, desk)
