"""`memstory-reference memory`: look at what is remembered, take it along, have it forgotten."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from memstory_reference.commands.chosen_settings import add_store_options, chosen_settings
from memstory_reference.commands.layers_options import (
    LAYERS,
    add_person_options,
    add_system_option,
    refuse_foreign,
)
from memstory_reference.commands.memory import layers_memory
from memstory_reference.commands.memory.printed import is_confirmed, print_rows, print_text, write_new
from memstory_reference.commands.memory_rows import Row, jsonl, page, row_of
from memstory_reference.commands.opened_memory import OpenedMemory, entry_named, open_memory
from memstory_reference.commands.terminal_text import cell, json_text
from memstory_reference.composition.embedders import embedder_of, make_idle_embedder
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.records.record import Layer
from memstory_reference.systems.topics.memory_service import EPISODIC, TOPIC

NOTHING_DONE = 1
OF_LAYERS = ("user_id", "thread_id")
KINDS = (TOPIC, *Layer)

Action = Callable[[argparse.Namespace, OpenedMemory, asyncio.Runner], int]


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its actions."""
    text = "look at what is remembered, take it along, have it forgotten"
    parser = subparsers.add_parser("memory", help=text, description=f"{text[0].upper()}{text[1:]}.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _action(actions, "list", list_memories, "list topics by name and engrams by age; or layers, newest first")
    listed.add_argument(
        "--kind", choices=KINDS, help="one kind only: topics have topic and episodic, layers the last three"
    )
    listed.add_argument("--archived", action="store_true", default=None, help="layers: what is out of use too")
    found = _action(actions, "search", search_memories, "find what was said by meaning")
    found.add_argument("text", help="what to look for")
    found.add_argument("--top-k", type=int, metavar="N", help="how many at most")
    found.add_argument("--min-score", type=float, metavar="COSINE", help="topics: how near at least, from -1 to 1")
    found.set_defaults(needs_embedder=True)
    shown = _action(actions, "show", show_memory, "show one memory in full")
    shown.add_argument("name", help="a topic, an id, or the first 8 or more characters of an id")
    gone = _action(actions, "forget", forget_memories, "delete memories, after asking", aliases=["delete"])
    gone.add_argument("names", nargs="*", metavar="NAME", help="topics or ids, as for show")
    gone.add_argument("--all", action="store_true", dest="everything", help="all memories of the owner")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    taken = _action(actions, "export", export_memories, "write one JSON object a line; of layers one document")
    taken.add_argument("--output", metavar="FILE", type=Path, help="a new file; without it, to the terminal or pipe")
    _action(actions, "status", count_memories, "say how much is remembered, and how")
    for name, text in (("archive", "take memories out of use without deleting them"), ("restore", "use them again")):
        moved = _action(actions, name, only_layers, f"layers: {text}")
        moved.add_argument("names", nargs="+", metavar="ID", help="ids, or the first 8 or more characters of them")


def list_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print all of an owner's memories, or all owners'."""
    rows = runner.run(_rows(memory, memory.all_of(parsed.owner), parsed.kind))
    print_rows(rows, is_json=parsed.json, for_none="Nothing is remembered.")
    return 0


def search_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print the engrams nearest in meaning, best first."""
    owner = memory.of(parsed.owner)
    found = runner.run(memory.service.search_episodic(owner, parsed.text, parsed.top_k, min_score=parsed.min_score))
    print_rows([row_of(owner, one) for one in found], is_json=parsed.json, for_none="No memories found.")
    return 0


def show_memory(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print one memory in full."""
    owner = memory.of(parsed.owner)
    row = row_of(owner, runner.run(entry_named(memory.service, owner, parsed.name)))
    print_text(json_text(row, indent=2) if parsed.json else page(row))
    return 0


def forget_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Delete what is named, all of it or nothing; without a yes nothing is deleted."""
    if parsed.everything == bool(parsed.names):
        raise InputError("memory forget: name what to forget, or say --all")
    owner = memory.of(parsed.owner)
    if parsed.everything:
        rows = runner.run(_rows(memory, [owner], None))
    else:
        entries = [runner.run(entry_named(memory.service, owner, name)) for name in parsed.names]
        rows = list({entry.id: row_of(owner, entry) for entry in entries}.values())
    if rows and not (parsed.yes or is_confirmed(rows)):
        sys.stderr.write("Nothing was forgotten.\n")
        return NOTHING_DONE
    gone = [row for row in rows if runner.run(memory.service.forget(owner, row["id"]))]
    print_text(json_text({"forgotten": [row["id"] for row in gone]}) if parsed.json else f"Forgotten: {len(gone)}.")
    return 0


def export_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Write all of an owner's memories, or all owners', as JSONL."""
    rows = runner.run(_rows(memory, memory.all_of(parsed.owner), None))
    if parsed.output is None:
        sys.stdout.write(jsonl(rows))
        return 0
    write_new(parsed.output, jsonl(rows))
    print_text(json_text({"exported": len(rows)}) if parsed.json else f"Exported: {len(rows)} to {parsed.output}.")
    return 0


def count_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print how many topics and engrams an owner has, or each owner."""
    owners = memory.all_of(parsed.owner)
    counts = {owner: runner.run(_counts(memory, owner)) for owner in owners}
    if parsed.json:
        print_text(json_text(counts, indent=2))
    else:
        lines = [f"{cell(owner)}: topics {n['topics']}, engrams {n['episodic']}" for owner, n in counts.items()]
        print_text("\n".join(lines) or "Nothing is remembered.")
    return 0


def only_layers(parsed: argparse.Namespace, _: OpenedMemory, __: asyncio.Runner) -> int:
    """Say that the topics memory has no such thing."""
    raise InputError(f"memory {parsed.action}: the topics memory keeps no archive; layers do, with --system layers")


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    action: Action,
    text: str,
    aliases: Sequence[str] = (),
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", aliases=aliases)
    add_system_option(parser)
    add_store_options(parser)
    add_person_options(parser)
    parser.add_argument(
        "--owner", metavar="NAME", help="topics: whose memories; needed where the store holds several owners'"
    )
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    parser.set_defaults(run=lambda parsed: _run(parsed, action), needs_embedder=False)
    return parser


def _run(parsed: argparse.Namespace, action: Action) -> int:
    if parsed.system == LAYERS:
        return layers_memory.run(parsed)
    refuse_foreign(parsed, OF_LAYERS, "belongs to --system layers; the topics memory has --owner")
    refuse_foreign(parsed, ("archived",), "belongs to --system layers; the topics memory keeps no archive")
    if getattr(parsed, "kind", None) in set(Layer) - {EPISODIC}:
        raise InputError(f"--kind {parsed.kind} belongs to --system layers; topics have {TOPIC}, {EPISODIC}")
    settings = chosen_settings(parsed)
    embedder = embedder_of(settings) if parsed.needs_embedder else make_idle_embedder(settings.embedding_model)
    with asyncio.Runner() as runner:
        memory = runner.run(open_memory(settings, embedder))
        try:
            return action(parsed, memory, runner)
        finally:
            runner.run(memory.close())


async def _counts(memory: OpenedMemory, owner: str) -> dict[str, int]:
    return {
        "topics": await memory.service.count(owner, TOPIC),
        "episodic": await memory.service.count(owner, EPISODIC),
    }


async def _rows(memory: OpenedMemory, owners: Sequence[str], kind: str | None) -> list[Row]:
    rows: list[Row] = []
    for owner in owners:
        topics = await memory.service.list_topics(owner) if kind != EPISODIC else []
        engrams = await memory.service.list_engrams(owner) if kind != TOPIC else []
        rows += [row_of(owner, topic) for topic in topics]
        rows += [row_of(owner, engram) for engram in engrams]
    return rows
