"""`memstory-reference memory`: look at what is remembered, take it along, have it forgotten; any of the six."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from tabulate import tabulate

from memstory.contract.errors import NotSupported, SetupError, UnavailableError
from memstory.contract.target import Hit, Query, Ref, Scope
from memstory.contract.texts import did_you_mean
from memstory.contract.values import Json, Tree
from memstory_reference.commands.terminal import cell, json_text, printable
from memstory_reference.composition.declaration import MemorySystem
from memstory_reference.composition.systems import SYSTEMS, system_named
from memstory_reference.errors import InputError, NotFoundError
from memstory_reference.input_checks import checked_owner
from memstory_reference.setting_rules import CheckedSettings
from memstory_reference.system_memory import ForgetResult, SystemMemory, own_arguments

LOG = logging.getLogger(__name__)
T = TypeVar("T")
ASKED_ROWS = 10
NOTHING_DONE = 1
SHORT_ID_CHARACTERS = 8
DAYS = "older_than_days"
"""The argument of the job `purge` of a memory that is told how old is too old."""

Row = dict[str, Tree]
"""A memory as JSON: owner, kind, id, topic (its key), text, created_at, metadata, perhaps score."""

_NAMED_OWNERS = 10
_RANDOM = re.compile("[0-9a-f]{32}")
"""A key that nobody chose: of observations the id is the key, too."""

_SETTING_OF = {
    "embedder": "embedding_model",
    "chat": "chat",
    "ollama_host": "ollama_host",
    "toolset": "toolset",
    "memory_mode": "mode",
}
"""Options that are one setting each, where the system has it."""


def run(parsed: argparse.Namespace) -> int:
    """Do what was typed."""
    return asyncio.run(_do(parsed))


async def _do(parsed: argparse.Namespace) -> int:
    if parsed.action in CLOSED_ACTIONS:
        return await CLOSED_ACTIONS[parsed.action](parsed)
    action = ACTIONS[parsed.action]
    able = [one.name for one in SYSTEMS.values() if action.needs is None or action.needs in one.memory.capabilities()]
    if parsed.system not in able:
        others = " and ".join(able)
        raise InputError(f"memory {parsed.action} is for {others}; the {parsed.system} memory has no such thing")
    try:
        async with _open_desk(parsed, action) as desk:
            return await action.act(parsed, desk)
    except NotSupported as error:
        raise InputError(f"memory {parsed.action} --system {parsed.system}: {error}") from error


def chosen_settings(parsed: argparse.Namespace) -> tuple[MemorySystem, CheckedSettings]:
    """Return the memory and the settings that were typed: the settings' file first, then each option."""
    system = system_named(parsed.system)
    changes: dict[str, Json] = {}
    for option, setting in _SETTING_OF.items():
        value = getattr(parsed, option, None)
        if value is not None and setting not in system.kind.rules():
            raise InputError(f"--{option.replace('_', '-')} is nothing that the {system.name} memory has; leave it out")
        if value is not None:
            changes[setting] = value
    place = getattr(parsed, "store", None)
    return system, system.settings(getattr(parsed, "settings", None), changes, "command line", place)


@asynccontextmanager
async def _open_desk(parsed: argparse.Namespace, action: DeskAction) -> AsyncIterator[Desk]:
    """Open the memory that was typed; where there is none, InputError, and nothing is made."""
    system, settings = chosen_settings(parsed)
    if not action.may_be_new and not system.is_stored(settings):
        raise InputError(
            f"{system.place_of(settings)}: no memory is stored here. Name its folder or database with --store, or make "
            f"one with 'chat --system {system.name}'"
        )
    memory = await (system.open(settings) if action.has_models else system.open_to_read(settings))
    try:
        yield Desk(memory=memory, owner=parsed.owner, session=parsed.thread_id)
    finally:
        await memory.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One owner's part of an open memory, or all owners' where nobody was named; `session` narrows it."""

    memory: SystemMemory
    owner: str | None
    session: str | None = None

    async def scopes(self) -> Sequence[Scope]:
        """Return whose memories are meant: those of who was typed, else of everybody."""
        try:
            owners = await self.memory.owners()
        except NotSupported as error:
            return [self._named_scope(error)]
        if self.owner is None:
            return [Scope(user=one, session=self.session) for one in owners]
        if self.owner not in owners:
            raise InputError(
                f"{self.owner!r:.80} has no memories here; {_who(owners)}.{did_you_mean(self.owner, owners)}"
            )
        return [Scope(user=self.owner, session=self.session)]

    async def scope(self) -> Scope:
        """Return whose memory is meant where it must be one: who was typed, or the only one there is."""
        scopes = await self.scopes()
        if len(scopes) != 1:
            raise InputError(f"{_who([one.user for one in scopes])}. Choose one with --owner")
        return scopes[0]

    async def writing_scope(self) -> Scope:
        """Return whose memory is added to: who was typed, known here or not."""
        if self.owner is None:
            return await self.scope()
        return Scope(user=checked_owner(self.owner), session=self.session)

    async def rows(self, kind: str | None = None, *, archived: bool) -> list[Row]:
        """Return what is remembered, of one kind or of all; with `archived` what is kept and no longer found, too."""

        async def rows(scope: Scope) -> list[Row]:
            found = await self.memory.list(scope, [kind] if kind else [])
            kept = await self.memory.list_archived(scope) if archived else ()
            shelved = [one for one in kept if kind in (None, one.kind)]
            return [*rows_of(scope, found), *rows_of(scope, shelved, archived=True)]

        return [row for of_one in (await self.of_each(rows)).values() for row in of_one]

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        """Return the memories of these keys, ids or beginnings of ids, each once; InputError if one is unknown."""
        scope = await self.scope()
        found = [await row_named(self.memory, name, scope) for name in names]
        return list({row["id"]: row for row in found}.values())

    async def run(self, job: str, args: Mapping[str, Tree]) -> Mapping[str, Tree]:
        """Run a job of the memory; return what it reports, by owner."""
        return await self.of_each(lambda scope: self.memory.run(job, args, scope))

    async def of_each(self, ask: Callable[[Scope], Awaitable[T]]) -> dict[str, T]:
        """Return what is asked of each owner; of several, one whose file is damaged is left out, and logged."""
        scopes = await self.scopes()
        found = {}
        for scope in scopes:
            try:
                found[scope.user] = await ask(scope)
            except UnavailableError as problem:
                if len(scopes) == 1:
                    raise
                LOG.error("%s is left out: %s", cell(scope.user), problem)  # noqa: TRY400  (the reason says all)
        return found

    def _named_scope(self, problem: NotSupported) -> Scope:
        if self.owner is None and self.session is None:
            raise InputError("say whose with --owner, or with --thread-id for a conversation without one") from problem
        return Scope(user=self.owner or "", session=self.session)


@dataclass(frozen=True, slots=True)
class DeskAction:
    """What is done at a desk; `needs` is what a memory must be able to do for it, where not all can.

    Without models a memory is opened to be read. Where none is stored, one that `may_be_new` is made.
    """

    act: Callable[[argparse.Namespace, Desk], Awaitable[int]]
    needs: str | None = None
    has_models: bool = False
    may_be_new: bool = False


async def list_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print all of an owner's memories, or all owners'."""
    rows = await desk.rows(parsed.kind, archived=parsed.archived)
    tell(parsed, rows, row_table(rows) if rows else "Nothing is remembered.", indent=2)
    return 0


async def search_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print what a text finds, best first."""
    scope = await desk.scope()
    query = Query(text=parsed.text, top_k=parsed.top_k, min_score=parsed.min_score)
    rows = rows_of(scope, await desk.memory.search(query, scope))
    tell(parsed, rows, row_table(rows) if rows else "No memories found.", indent=2)
    return 0


async def show_memory(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print one memory in full."""
    (row,) = await desk.named([parsed.name])
    tell(parsed, row, row_page(row), indent=2)
    return 0


async def forget_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Delete what is named with what repeats it, all of it or nothing; without a yes nothing is deleted."""
    if parsed.everything == bool(parsed.names):
        raise InputError("memory forget: name what to forget, or say --all")
    scope = await desk.scope()
    if parsed.everything:
        rows: Sequence[Row] = await desk.rows(archived=True)
    else:
        named = await desk.named(parsed.names)
        repeats = [row for one in named for row in [one, *rows_of(scope, await desk.memory.repeats(one["id"], scope))]]
        rows = list({row["id"]: row for row in repeats}.values())
    if not parsed.yes and rows and not is_confirmed(rows):
        sys.stderr.write("Nothing was forgotten.\n")
        return NOTHING_DONE
    if parsed.everything:
        await desk.memory.delete(Ref(), scope)
        gone = [row["id"] for row in rows]
    else:
        gone = [row["id"] for row in rows if await desk.memory.delete(Ref(id=row["id"]), scope)]
    tell(parsed, {"forgotten": gone}, f"Forgotten: {len(gone)}.")
    return 0


async def export_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Write all that is remembered, a line of JSON for each memory; of several owners' each says whose it is."""
    exported = await desk.of_each(desk.memory.export_rows)
    is_one = len(exported) == 1
    rows = [row if is_one else {"owner": owner, **row} for owner, own in exported.items() for row in own]
    text = "".join(f"{json_text(row)}\n" for row in rows)
    if parsed.output is None:
        sys.stdout.write(text)
        return 0
    write_new(parsed.output, text)
    tell(parsed, {"exported": len(rows)}, f"Exported: {len(rows)} to {parsed.output}.")
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
    tell(parsed, {"imported": number}, f"Imported: {number} from {parsed.file}.")
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
    tell(parsed, report, f"Migrated: {number} from {parsed.file}.")
    return 0 if not report["skipped"] else NOTHING_DONE


async def print_logged(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print what the memory logs for its operator, a line each, of who was typed or of everybody."""
    scopes = [Scope(user="")]
    with suppress(NotSupported):
        await desk.memory.owners()
        scopes = [*await desk.scopes()]
    if desk.owner is not None or desk.session is not None:
        scopes = [*await desk.scopes()]
    rows = [
        {"owner": scope.user, **row} for scope in scopes for row in await desk.memory.inspect(parsed.action, {}, scope)
    ]
    shown = [{name: cell(str(value)) for name, value in row.items()} for row in rows]
    table = tabulate(shown, headers="keys", tablefmt="simple", disable_numparse=True)
    tell(parsed, rows, table if rows else "Nothing is logged.", indent=2)
    return 0


async def print_status(parsed: argparse.Namespace, desk: Desk) -> int:
    """Print how much is remembered."""
    status = await desk.of_each(lambda scope: desk.memory.inspect("status", {}, scope))
    lines = [f"{cell(owner or 'this thread')}: {desk.memory.status_line(one)}" for owner, one in status.items()]
    tell(parsed, status, "\n".join(lines) or "Nothing is remembered.", indent=2)
    return 0


async def move_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Take memories out of use without deleting them, or use them again."""
    is_back = parsed.action == "restore"
    done, why_not = ("restored", "is not archived") if is_back else ("archived", "is not active")
    ids = [row["id"] for row in await desk.named(parsed.names)]
    moved = [one for one in ids if any((await desk.run(parsed.action, {"id": one})).values())]
    for one in ids:
        if one not in moved:
            sys.stderr.write(f"{one[:SHORT_ID_CHARACTERS]} {why_not}; nothing was done with it\n")
    tell(parsed, {done: moved}, f"{done.capitalize()}: {len(moved)}.")
    return 0 if len(moved) == len(ids) else NOTHING_DONE


async def purge_memories(parsed: argparse.Namespace, desk: Desk) -> int:
    """Delete what is too old."""
    able = [one.name for one in SYSTEMS.values() if DAYS in own_arguments(one.memory, "purge")]
    if parsed.days is not None and parsed.system not in able:
        raise InputError(f"memory purge --days is for {' and '.join(able)}; leave it out, the settings say how long")
    reports = await desk.run("purge", {} if parsed.days is None else {DAYS: parsed.days})
    number = sum(sum(report.values()) for report in reports.values())
    tell(parsed, {"purged": number}, f"Purged: {number}.")
    return 0


async def rate_memory(parsed: argparse.Namespace, desk: Desk) -> int:
    """Rate one memory."""
    (row,) = await desk.named([parsed.name])
    is_rated = await desk.memory.feedback(Ref(id=row["id"]), parsed.value, await desk.scope())
    tell(parsed, {"rated": is_rated}, "Rated.")
    return 0


async def run_job(parsed: argparse.Namespace, desk: Desk) -> int:
    """Run a job of the memory, and print what it reports of each owner."""
    reports = await desk.run(parsed.job, job_arguments(parsed.arguments))
    sys.stdout.write(f"{json_text(reports, indent=2)}\n")
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
    tell(parsed, {"reindexed": number}, f"Embedded again: {number}.")
    return 0


async def back_up(parsed: argparse.Namespace) -> int:
    """Copy a memory to a new folder, whether or not another process has it open."""
    system, settings = chosen_settings(parsed)
    system.back_up(settings, parsed.output)
    tell(parsed, {"copied": str(parsed.output)}, f"Copied to {parsed.output}.")
    return 0


ACTIONS: Mapping[str, DeskAction] = {
    "list": DeskAction(list_memories),
    "search": DeskAction(search_memories, has_models=True),
    "show": DeskAction(show_memory),
    "forget": DeskAction(forget_memories),
    "export": DeskAction(export_memories),
    "import": DeskAction(import_memories, has_models=True, may_be_new=True),
    "migrate": DeskAction(migrate_memories, "job.migrate", has_models=True, may_be_new=True),
    "audit": DeskAction(print_logged, "inspect.audit"),
    "feedback": DeskAction(print_logged, "inspect.feedback"),
    "purge": DeskAction(purge_memories, "job.purge"),
    "rate": DeskAction(rate_memory, "feedback"),
    "run": DeskAction(run_job, has_models=True),
    "status": DeskAction(print_status),
    "archive": DeskAction(move_memories, "job.archive"),
    "restore": DeskAction(move_memories, "job.archive"),
}
CLOSED_ACTIONS: Mapping[str, Callable[[argparse.Namespace], Awaitable[int]]] = {
    "reindex": reindex_memories,
    "backup": back_up,
}
"""What is done with a memory that is not opened for it."""


def tell(parsed: argparse.Namespace, value: Json, text: str, *, indent: int | None = None) -> None:
    """Print what was found or done: as JSON where that was typed, else in words."""
    sys.stdout.write(f"{json_text(value, indent=indent) if parsed.json else text}\n")


def is_confirmed(rows: Sequence[Row]) -> bool:
    """Show what is about to be deleted, and ask on the terminal; everything but a yes is a no."""
    for row in rows[:ASKED_ROWS]:
        sys.stderr.write(f"  {cell(row_name(row), 40)}  {cell(row['text'])}\n")
    if len(rows) > ASKED_ROWS:
        sys.stderr.write(f"  … and {len(rows) - ASKED_ROWS} more\n")
    sys.stderr.write(f"Forget {'this' if len(rows) == 1 else f'these {len(rows)}'} for good? [y/N] ")
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


async def forget_meant(memory: SystemMemory, what: str, scope: Scope) -> ForgetResult:
    """Forget what a name or an id means, else all that is about these words, with what repeats it."""
    done = [await memory.forget(one, scope) for one in await _ids_meant(memory, what, scope)]
    gone = {hit.id: hit for one in done for hit in one.gone}
    # What one of them left may have gone with the next.
    mentions = {hit.id: hit for one in done for hit in one.mentions if hit.id not in gone}
    return ForgetResult(gone=[*gone.values()], mentions=[*mentions.values()])


async def _ids_meant(memory: SystemMemory, what: str, scope: Scope) -> Sequence[str]:
    try:
        return [(await row_named(memory, what, scope))["id"]]
    except NotFoundError as unnamed:
        if "delete.about" not in memory.operations:
            reason = f"{unnamed} This memory forgets by a name or an id, not by words"
            raise NotSupported("delete.about", reason) from unnamed
        about = await memory.ids_about([what], scope)
        if not about:
            raise
        return about


async def row_named(memory: SystemMemory, name: str, scope: Scope) -> Row:
    """Return the memory of this key, id or beginning of an id; InputError if there is none, or more than one."""
    living = rows_of(scope, await memory.list(scope))
    every = [*living, *rows_of(scope, await memory.list_archived(scope), archived=True)]
    # What replaced another has its key.
    exact = [row for row in living if name == row["topic"]] or [row for row in every if name == row["id"]]
    if not exact and "get.key" in memory.operations:
        found = await memory.get(Ref(key=name), scope)
        exact = rows_of(scope, [found]) if found else []
    if not exact and len(name) >= SHORT_ID_CHARACTERS:
        exact = [row for row in every if row["id"].startswith(name)]
    if len(exact) > 1:
        raise InputError(f"{name!r:.80} begins several ids: {', '.join(row['id'] for row in exact[:3])}, …")
    if exact:
        return exact[0]
    keys = [row["topic"] for row in every if row["topic"]]
    # The beginning of a key is short for it, though other keys may share more letters.
    begun = [key for key in keys if key.startswith(name.strip().lower())]
    near = f" Did you mean '{begun[0]}'?" if begun else did_you_mean(name.strip().lower(), keys)
    how = near or f" A list shows the ids; their first {SHORT_ID_CHARACTERS} characters do."
    raise NotFoundError(f"nothing is remembered under {name!r:.80}.{how}")


def _who(owners: Sequence[str]) -> str:
    if not owners:
        return "the store holds nobody's memories yet"
    more = ", …" if len(owners) > _NAMED_OWNERS else ""
    return f"the store holds the memories of {', '.join(owners[:_NAMED_OWNERS])}{more}"


def rows_of(scope: Scope, hits: Sequence[Hit], *, archived: bool = False) -> list[Row]:
    """Return memories as rows."""
    return [_row(scope.user or None, hit, archived=archived) for hit in hits]


def _row(owner: str | None, hit: Hit, *, archived: bool) -> Row:
    row: Row = {
        "owner": owner,
        "kind": hit.kind,
        "id": hit.id,
        "topic": hit.key,
        "text": hit.text,
        "created_at": hit.created_at,
        "metadata": dict(hit.metadata),
    }
    scored = row if hit.score is None else {**row, "score": round(hit.score, 6)}
    return {**scored, "archived": True} if archived else scored


def is_named(row: Row) -> bool:
    """Say whether somebody chose the key of a row."""
    return bool(row["topic"]) and not _RANDOM.fullmatch(row["topic"])


def row_name(row: Row) -> str:
    """Return what a row is called in a command: its topic, or the beginning of its id."""
    return str(row["topic"] if is_named(row) else row["id"][:SHORT_ID_CHARACTERS])


def row_table(rows: Sequence[Row]) -> str:
    """Return rows as a table, one line each; the owner and the score only where rows differ in them."""
    has_owners = len({row["owner"] for row in rows}) > 1
    has_scores = any("score" in row for row in rows)

    def text(row: Row) -> str:
        by = row["metadata"].get("speaker")
        said = f"{by}: {row['text']}" if by else row["text"]
        return cell(f"(archived) {said}" if row.get("archived") else said)

    lines = [
        {
            **({"owner": cell(row["owner"], 20)} if has_owners else {}),
            **({"score": f"{row['score']:.2f}"} if has_scores else {}),
            "name": cell(row_name(row), 40),
            "when": (row["created_at"] or "")[:10],
            "text": text(row),
        }
        for row in rows
    ]
    return tabulate(lines, headers="keys", tablefmt="simple", disable_numparse=True)


def row_page(row: Row) -> str:
    """Return a row in full, its text last."""
    shown = {key: row[key] for key in ("owner", "kind", "id", "topic", "created_at")} | row["metadata"]
    lines = [f"{key}: {printable(str(value))}" for key, value in shown.items() if value is not None]
    return "\n".join([*lines, "", printable(row["text"])])
