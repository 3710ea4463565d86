"""`memstory-reference memory`: look at what is remembered, take it along, have it forgotten."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from memstory_reference import bootstrap
from memstory_reference.commands.chosen_settings import add_store_options, chosen_settings
from memstory_reference.commands.memory_rows import Row, jsonl, name_of, page, row_of, table
from memstory_reference.commands.opened_memory import OpenedMemory, entry_named, open_memory
from memstory_reference.commands.terminal_text import cell, json_text
from memstory_reference.errors import InputError, SetupProblem
from memstory_reference.systems.topics.memory_service import EPISODIC, TOPIC

NOTHING_DONE = 1
ASKED_ROWS = 10

Action = Callable[[argparse.Namespace, OpenedMemory, asyncio.Runner], int]


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its actions."""
    parser = subparsers.add_parser("memory", help="list, search, show, forget and export what is remembered")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _action(actions, "list", list_memories, "list topics by name and engrams by age")
    listed.add_argument("--kind", choices=(TOPIC, EPISODIC), help="one kind only")
    found = _action(actions, "search", search_memories, "find engrams by meaning")
    found.add_argument("text", help="what to look for")
    found.add_argument("--top-k", type=int, metavar="N", help="how many at most")
    found.add_argument("--min-score", type=float, metavar="COSINE", help="how near at least, from -1 to 1")
    found.set_defaults(needs_embedder=True)
    shown = _action(actions, "show", show_memory, "show one memory in full")
    shown.add_argument("name", help="a topic, an id, or the first 8 or more characters of an id")
    gone = _action(actions, "forget", forget_memories, "delete memories, after asking")
    gone.add_argument("names", nargs="*", metavar="NAME", help="topics or ids, as for show")
    gone.add_argument("--all", action="store_true", dest="everything", help="all memories of the owner")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    taken = _action(actions, "export", export_memories, "write one JSON object a line")
    taken.add_argument("--output", metavar="FILE", type=Path, help="a new file; without it, to the terminal or pipe")


def list_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print all of an owner's memories, or all owners'."""
    rows = runner.run(_rows(memory, memory.all_of(parsed.owner), parsed.kind))
    _print_rows(rows, is_json=parsed.json, for_none="Nothing is remembered.")
    return 0


def search_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print the engrams nearest in meaning, best first."""
    owner = memory.of(parsed.owner)
    found = runner.run(memory.service.search_episodic(owner, parsed.text, parsed.top_k, min_score=parsed.min_score))
    _print_rows([row_of(owner, one) for one in found], is_json=parsed.json, for_none="No memories found.")
    return 0


def show_memory(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Print one memory in full."""
    owner = memory.of(parsed.owner)
    row = row_of(owner, runner.run(entry_named(memory.service, owner, parsed.name)))
    _print(json_text(row, indent=2) if parsed.json else page(row))
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
    if rows and not (parsed.yes or _is_confirmed(rows)):
        sys.stderr.write("Nothing was forgotten.\n")
        return NOTHING_DONE
    gone = [row for row in rows if runner.run(memory.service.forget(owner, row["id"]))]
    _print(json_text({"forgotten": [row["id"] for row in gone]}) if parsed.json else f"Forgotten: {len(gone)}.")
    return 0


def export_memories(parsed: argparse.Namespace, memory: OpenedMemory, runner: asyncio.Runner) -> int:
    """Write all of an owner's memories, or all owners', as JSONL."""
    rows = runner.run(_rows(memory, memory.all_of(parsed.owner), None))
    if parsed.output is None:
        sys.stdout.write(jsonl(rows))
        return 0
    _write_new(parsed.output, jsonl(rows))
    _print(json_text({"exported": len(rows)}) if parsed.json else f"Exported: {len(rows)} to {parsed.output}.")
    return 0


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, action: Action, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_store_options(parser)
    parser.add_argument("--owner", metavar="NAME", help="whose memories; needed where the store holds several owners'")
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    parser.set_defaults(run=lambda parsed: _run(parsed, action), needs_embedder=False)
    return parser


def _run(parsed: argparse.Namespace, action: Action) -> int:
    settings = chosen_settings(parsed)
    embedder = (
        bootstrap.make_embedder(settings.embedding_model, ollama_host=settings.ollama_host)
        if parsed.needs_embedder
        else bootstrap.make_idle_embedder(settings.embedding_model)
    )
    with asyncio.Runner() as runner:
        memory = runner.run(open_memory(settings, embedder))
        try:
            return action(parsed, memory, runner)
        finally:
            runner.run(memory.close())


async def _rows(memory: OpenedMemory, owners: Sequence[str], kind: str | None) -> list[Row]:
    rows: list[Row] = []
    for owner in owners:
        topics = await memory.service.list_topics(owner) if kind != EPISODIC else []
        engrams = await memory.service.list_engrams(owner) if kind != TOPIC else []
        rows += [row_of(owner, topic) for topic in topics]
        rows += [row_of(owner, engram) for engram in engrams]
    return rows


def _is_confirmed(rows: Sequence[Row]) -> bool:
    for row in rows[:ASKED_ROWS]:
        sys.stderr.write(f"  {cell(name_of(row), 40)}  {cell(row['text'])}\n")
    if len(rows) > ASKED_ROWS:
        sys.stderr.write(f"  … and {len(rows) - ASKED_ROWS} more\n")
    sys.stderr.write(f"Forget {'this' if len(rows) == 1 else f'these {len(rows)}'} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_rows(rows: Sequence[Row], *, is_json: bool, for_none: str) -> None:
    if is_json:
        _print(json_text(rows, indent=2))
    else:
        _print(table(rows) if rows else for_none)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _write_new(file: Path, text: str) -> None:
    """Write a file that was not there, for its owner's eyes only; a half-written one does not stay."""
    try:
        written = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as problem:
        raise SetupProblem(f"{file} is there already; name a new file") from problem
    try:
        with os.fdopen(written, "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError:
        file.unlink(missing_ok=True)
        raise
