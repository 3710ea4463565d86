"""`memstory-reference memory`: look at what is remembered, take it along, have it forgotten; any of the six."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import yaml
from tabulate import tabulate

from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import Ref
from memstory.contract.values import Tree
from memstory_reference.commands.desk import Desk, chosen_settings, open_desk
from memstory_reference.commands.memory_rows import (
    SHORT_ID_CHARACTERS,
    Row,
    row_name,
    row_page,
    row_table,
    rows_as_jsonl,
)
from memstory_reference.commands.terminal import cell, json_text
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.errors import InputError
from memstory_reference.system_memory import own_arguments

ASKED_ROWS = 10


def print_rows(rows: Sequence[Row], *, is_json: bool, for_none: str) -> None:
    """Print rows as JSON or as a table, or say that there are none."""
    if is_json:
        print_text(json_text(rows, indent=2))
    else:
        print_text(row_table(rows) if rows else for_none)


def print_log(rows: Sequence[Mapping[str, Tree]], *, is_json: bool) -> None:
    """Print what a log holds, a line each."""
    if is_json:
        print_text(json_text(list(rows), indent=2))
    elif rows:
        shown = [{name: cell(str(value)) for name, value in row.items()} for row in rows]
        print_text(tabulate(shown, headers="keys", tablefmt="simple", disable_numparse=True))
    else:
        print_text("Nothing is logged.")


def print_text(text: str) -> None:
    """Print a text with the end of its line."""
    sys.stdout.write(f"{text}\n")


def is_confirmed(rows: Sequence[Row]) -> bool:
    """Show what is about to be deleted, and ask."""
    for row in rows[:ASKED_ROWS]:
        sys.stderr.write(f"  {cell(row_name(row), 40)}  {cell(row['text'])}\n")
    if len(rows) > ASKED_ROWS:
        sys.stderr.write(f"  … and {len(rows) - ASKED_ROWS} more\n")
    return is_yes(f"Forget {'this' if len(rows) == 1 else f'these {len(rows)}'} for good? [y/N] ")


def is_yes(question: str) -> bool:
    """Ask on the terminal; everything but a yes is a no."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def write_new(file: Path, text: str) -> None:
    """Write a file that was not there, for its owner's eyes only; a half-written one does not stay."""
    try:
        written = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as problem:
        raise SetupError(f"{file} is there already; name a new file") from problem
    try:
        with os.fdopen(written, "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError:
        file.unlink(missing_ok=True)
        raise


NOTHING_DONE = 1
NEEDS_MODEL = frozenset({"search", "import", "migrate", "run"})
MAY_BE_NEW = frozenset({"import", "migrate"})
DAYS = "older_than_days"
"""The argument of the job `purge` of a memory that is told how old is too old."""

NEEDED: Mapping[str, str] = {
    "migrate": "job.migrate",
    "audit": "inspect.audit",
    "feedback": "inspect.feedback",
    "purge": "job.purge",
    "rate": "feedback",
    "archive": "job.archive",
    "restore": "job.archive",
}
"""What a memory must be able to do for an action, where not all can."""

Action = Callable[[argparse.Namespace, Desk], Awaitable[int]]


async def list_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print all of an owner's memories, or all owners'."""
    rows = await desk.list_rows(parsed.kind, archived=parsed.archived)
    print_rows(rows, is_json=parsed.json, for_none="Nothing is remembered.")
    return 0


async def search_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print what a text finds, best first."""
    rows = await desk.search(parsed.text, parsed.top_k, parsed.min_score)
    print_rows(rows, is_json=parsed.json, for_none="No memories found.")
    return 0


async def show_memory(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print one memory in full."""
    (row,) = await desk.find_rows([parsed.name])
    print_text(json_text(row, indent=2) if parsed.json else row_page(row))
    return 0


async def forget_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Delete what is named, all of it or nothing; without a yes nothing is deleted."""
    if parsed.everything == bool(parsed.names):
        raise InputError("memory forget: name what to forget, or say --all")
    if parsed.everything:
        await desk.scope()
        rows: Sequence[Tree] = await desk.list_rows(None, archived=True)
    else:
        rows = await desk.with_repeats(await desk.find_rows(parsed.names))
    if not parsed.yes and rows and not is_confirmed(rows):
        sys.stderr.write("Nothing was forgotten.\n")
        return NOTHING_DONE
    if parsed.everything:
        await desk.forget_everything()
        gone: Sequence[str] = [row["id"] for row in rows]
    else:
        gone = await desk.forget(rows)
    print_text(json_text({"forgotten": list(gone)}) if parsed.json else f"Forgotten: {len(gone)}.")
    return 0


async def export_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Write all that is remembered, a line of JSON for each memory."""
    rows = await desk.export()
    text = rows_as_jsonl(rows)
    if parsed.output is None:
        sys.stdout.write(text)
        return 0
    write_new(parsed.output, text)
    print_text(json_text({"exported": len(rows)}) if parsed.json else f"Exported: {len(rows)} to {parsed.output}.")
    return 0


async def import_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Add what `export` wrote, all of the file or nothing; what the memory leaves out is named."""
    scope = await desk.writing_scope()
    rows = read_rows(parsed)
    try:
        left_out = await desk.memory.import_rows(rows, scope)
    except InputError as problem:
        raise InputError(f"{parsed.file}: {problem}") from problem
    await desk.memory.settle()
    for reason in left_out:
        sys.stderr.write(f"left out: {cell(reason)}\n")
    number = len(rows) - len(left_out)
    print_text(json_text({"imported": number}) if parsed.json else f"Imported: {number} from {parsed.file}.")
    return 0


def read_rows(parsed: argparse.Namespace) -> list[Mapping[str, Tree]]:
    """Return the rows of a file of JSON lines, without the owner that they had; InputError names the line."""
    try:
        lines = parsed.file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            f"{parsed.file} cannot be read: {problem}. Name a file that 'memory export' wrote"
        ) from problem
    rows: list[Mapping[str, Tree]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise InputError(f"{parsed.file}: line {number}: not JSON: {problem}") from problem
        if not isinstance(row, dict):
            raise InputError(f"{parsed.file}: line {number}: found {type(row).__name__}; allowed: an object")
        rows.append({name: value for name, value in row.items() if name != "owner"})
    return rows


async def migrate_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Take over what an earlier version of the memory wrote; what is skipped is named."""
    report = await desk.memory.run("migrate", {"rows": read_rows(parsed)}, await desk.writing_scope())
    for name in ("skipped", "warnings"):
        for reason in report[name]:
            sys.stderr.write(f"{name}: {cell(reason)}\n")
    number = report["migrated"]
    print_text(json_text(report) if parsed.json else f"Migrated: {number} from {parsed.file}.")
    return 0 if not report["skipped"] else NOTHING_DONE


async def print_logged(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print what the memory logs for its operator."""
    print_log(await desk.log(parsed.action), is_json=parsed.json)
    return 0


async def print_status(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print how much is remembered."""
    status = await desk.status()
    lines = [f"{cell(owner or 'this thread')}: {desk.memory.status_line(one)}" for owner, one in status.items()]
    print_text(json_text(status, indent=2) if parsed.json else "\n".join(lines) or "Nothing is remembered.")
    return 0


async def move_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Take memories out of use without deleting them, or use them again."""
    is_back = parsed.action == "restore"
    done, why_not = ("restored", "is not archived") if is_back else ("archived", "is not active")
    ids = [row["id"] for row in await desk.find_rows(parsed.names)]
    moved = [one for one in ids if any((await desk.run(parsed.action, {"id": one})).values())]
    for one in ids:
        if one not in moved:
            sys.stderr.write(f"{one[:SHORT_ID_CHARACTERS]} {why_not}; nothing was done with it\n")
    print_text(json_text({done: moved}) if parsed.json else f"{done.capitalize()}: {len(moved)}.")
    return 0 if len(moved) == len(ids) else NOTHING_DONE


async def purge_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Delete what is too old."""
    able = [one.name for one in SYSTEMS.values() if DAYS in own_arguments(one.memory, "purge")]
    if parsed.days is not None and parsed.system not in able:
        raise InputError(f"memory purge --days is for {' and '.join(able)}; leave it out, the settings say how long")
    reports = await desk.run("purge", {} if parsed.days is None else {DAYS: parsed.days})
    number = sum(sum(report.values()) for report in reports.values())
    print_text(json_text({"purged": number}) if parsed.json else f"Purged: {number}.")
    return 0


async def rate_memory(parsed: argparse.Namespace, desk: Desk) -> int:
    """Rate one memory."""
    (row,) = await desk.find_rows([parsed.name])
    is_rated = await desk.memory.feedback(Ref(id=row["id"]), parsed.value, await desk.scope())
    print_text(json_text({"rated": is_rated}) if parsed.json else "Rated.")
    return 0


async def run_job(parsed: argparse.Namespace, desk: Desk) -> int:
    """Run a job of the memory, and print what it reports of each owner."""
    reports = await desk.run(parsed.job, job_arguments(parsed.arguments))
    print_text(json_text(reports, indent=2))
    return 0


def job_arguments(typed: Sequence[str]) -> dict[str, Tree]:
    """Return `NAME=VALUE` as arguments; a value is read as YAML, so that 3 is a number and on a switch.

    >>> job_arguments(["until_quiet=true", "task=Study floods"])
    {'until_quiet': True, 'task': 'Study floods'}
    """
    arguments = {}
    for one in typed:
        name, is_given, value = one.partition("=")
        if not is_given or not name:
            raise InputError(f"{one!r:.80} is not an argument; allowed: NAME=VALUE")
        try:
            arguments[name] = yaml.safe_load(value)
        except yaml.YAMLError as problem:
            raise InputError(f"{name}: {' '.join(str(problem).split())}") from problem
    return arguments


async def reindex_memories(parsed: argparse.Namespace) -> int:
    """Embed all texts of a store, of all owners, by the model of the settings."""
    system, settings = chosen_settings(parsed)
    number = await system.reindex(settings)
    print_text(json_text({"reindexed": number}) if parsed.json else f"Embedded again: {number}.")
    return 0


def back_up(parsed: argparse.Namespace) -> int:
    """Copy a memory to a new folder, whether or not another process has it open."""
    system, settings = chosen_settings(parsed)
    system.back_up(settings, parsed.output)
    print_text(json_text({"copied": str(parsed.output)}) if parsed.json else f"Copied to {parsed.output}.")
    return 0


ACTIONS: Mapping[str, Action] = {
    "list": list_memories,
    "search": search_memories,
    "show": show_memory,
    "forget": forget_memories,
    "export": export_memories,
    "import": import_memories,
    "migrate": migrate_memories,
    "audit": print_logged,
    "feedback": print_logged,
    "purge": purge_memories,
    "rate": rate_memory,
    "run": run_job,
    "status": print_status,
    "archive": move_memories,
    "restore": move_memories,
}


def run(parsed: argparse.Namespace) -> int:
    """Do what was typed."""
    return asyncio.run(_do(parsed))


async def _do(parsed: argparse.Namespace) -> int:
    needed = NEEDED.get(parsed.action)
    able = [one.name for one in SYSTEMS.values() if needed is None or needed in one.memory.capabilities()]
    if parsed.system not in able:
        others = " and ".join(able)
        raise InputError(f"memory {parsed.action} is for {others}; the {parsed.system} memory has no such thing")
    try:
        if parsed.action == "reindex":
            return await reindex_memories(parsed)
        if parsed.action == "backup":
            return back_up(parsed)
        may_be_new = parsed.action in MAY_BE_NEW
        async with open_desk(parsed, needs_model=parsed.action in NEEDS_MODEL, may_be_new=may_be_new) as desk:
            return await ACTIONS[parsed.action](parsed, desk)
    except NotSupported as error:
        raise InputError(f"memory {parsed.action} --system {parsed.system}: {error}") from error
