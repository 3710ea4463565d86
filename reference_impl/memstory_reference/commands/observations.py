"""`memstory-reference observations`: store a finished run or carry one out, and see why one is found before another."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import cast

from tabulate import tabulate

from memstory.contract.errors import SetupError
from memstory.contract.values import Tree
from memstory.models.ollama_address import DEFAULT, VARIABLE, ollama_url
from memstory_reference.commands.memory import chosen_settings, tell
from memstory_reference.commands.terminal import printable
from memstory_reference.errors import InputError
from memstory_reference.systems.observations.memory import ObservationsMemory, StoredObservation
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ranking import RankedObservation
from memstory_reference.systems.observations.research import LocalCorpus, Passage

NOTHING_FOUND = "Nothing is known about this; a run on it would start from scratch."
WRITING = ("store", "run")
"""Actions that make a store where there is none."""

Work = Callable[[ObservationsMemory, argparse.Namespace], Awaitable[int]]


async def search(memory: ObservationsMemory, options: argparse.Namespace) -> int:
    """Print what is found, with the numbers of each rank: rank = (0.7 sim + 0.3 qual) * q_adjust."""
    if options.context:
        context = await memory.get_context(options.task, options.owner, options.top_k)
        sys.stdout.write(f"{printable(context or NOTHING_FOUND)}\n")
        return 0
    found = await memory.find(options.task, options.owner, options.top_k)
    headers = ("run", "title", "sim", "qual", "q_adjust", "rank", "found by")
    table = tabulate([_explanation(entry) for entry in found], headers, disable_numparse=True)
    rows = [{**_json(entry.observation), **asdict(entry.rank)} for entry in found]
    tell(options, rows, printable(table) if found else NOTHING_FOUND, indent=2)
    return 0


async def store(memory: ObservationsMemory, options: argparse.Namespace) -> int:
    """Store a run from its output."""
    if not options.task.strip():
        raise InputError("TASK is blank; say what the run was about: searches compare with it")
    stored = await memory.compress_and_store(
        task=options.task,
        output=read_output(options.output),
        owner=options.owner,
        task_type=options.type,
        final_score=options.score,
        run_id=options.run_id,
    )
    told = {"outcome": stored.outcome, "by": stored.by, "warnings": [*stored.warnings], **_json(stored.observation)}
    tell(options, told, printable(_stored_line(stored)), indent=2)
    _warn(options, stored)
    return 0


async def research(memory: ObservationsMemory, options: argparse.Namespace) -> int:
    """Carry out a task on a folder of texts; what earlier runs read is not read again."""
    given = {"run_id": options.run_id, "task_type": options.type, "final_score": options.score}
    run = await memory.research(options.task, options.owner, LocalCorpus(passages_in(options.corpus)), **given)
    told: dict[str, Tree] = {
        "prior_work": run.plan.prior_work,
        "fetched": run.fetched,
        "spared": run.spared,
        "output": run.output,
        "stored": run.stored and _json(run.stored.observation),
    }
    lines = [
        f"prior work: {'; '.join(run.plan.prior_work) or 'none'}",
        f"read: {', '.join(run.fetched) or 'nothing'}",
        f"spared: {', '.join(run.spared) or 'nothing'}",
        f"\n{run.output}\n",
        "Nothing was found, and nothing is stored." if run.stored is None else _stored_line(run.stored),
    ]
    tell(options, told, printable("\n".join(lines)), indent=2)
    _warn(options, run.stored)
    return 0


def read_output(file: str) -> str:
    """Return what a run wrote: a file's text, or for - what comes in by the pipe."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not text in UTF-8 ({error.reason})") from error
    except OSError as error:
        raise InputError(f"--output {file}: {error.strerror or error}; name a file that can be read, or -") from error


def passages_in(folder: Path) -> list[Passage]:
    """Return the texts of a folder, each under its path within it."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no folder of texts; name it with --corpus")
    files = sorted(file for end in ("md", "txt") for file in folder.rglob(f"*.{end}") if file.is_file())
    return [Passage(id=file.relative_to(folder).as_posix(), text=file.read_text("utf-8", "replace")) for file in files]


ACTIONS: Mapping[str, Work] = {
    "search": search,
    "store": store,
    "run": research,
}


def run(parsed: argparse.Namespace) -> int:
    """Do what was typed."""
    return asyncio.run(_with_memory(ACTIONS[parsed.action], parsed))


async def _with_memory(work: Work, options: argparse.Namespace) -> int:
    if options.ollama_host is not None and "://" not in options.ollama_host:
        options.ollama_host = _url_of(options.ollama_host)
    system, settings = chosen_settings(options)
    if options.action not in WRITING and not system.is_stored(settings):
        raise InputError(f"{settings.folder}: no observations are stored here; name the folder with --store")
    memory = cast("ObservationsMemory", await system.open(settings))
    try:
        return await work(memory, options)
    finally:
        await memory.close()


def _url_of(host: str) -> str:
    """Return the URL of HOST or HOST:PORT, as Ollama's own programs take them."""
    try:
        return ollama_url({VARIABLE: host}) or DEFAULT
    except SetupError as error:
        raise InputError(str(error).replace(VARIABLE, "--ollama-host")) from error


def _explanation(entry: RankedObservation) -> tuple[str, ...]:
    numbers = (entry.rank.sim, entry.rank.qual, entry.rank.q_adjust, entry.rank.rank)
    by = "words" if entry.by_keyword else "meaning"
    return (entry.observation.id, entry.observation.title, *(f"{number:.4f}" for number in numbers), by)


def _json(observation: Observation) -> dict[str, Tree]:
    return {**asdict(observation), "timestamp": observation.timestamp.isoformat()}


def _stored_line(stored: StoredObservation) -> str:
    by = "rules" if stored.by != "model" else "the model"
    return f"{stored.observation.id}: {stored.outcome}, summarised by {by}"


def _warn(options: argparse.Namespace, stored: StoredObservation | None) -> None:
    """Say what people should know of a summary; JSON has it in its own field."""
    if stored is not None and not options.json:
        for warning in stored.warnings:
            sys.stderr.write(f"! {printable(warning)}\n")
