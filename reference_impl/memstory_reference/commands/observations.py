"""`memstory-reference observations`: what finished runs left behind, and why one is found before another."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from tabulate import tabulate

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.composition import embedders
from memstory_reference.composition.embedders import MINILM
from memstory_reference.composition.observations import OBSERVATIONS_FILE, open_observations
from memstory_reference.errors import InputError
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.injection import score_text
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ordering import Ranked
from memstory_reference.systems.observations.service import ObservationService

DEFAULT_OWNER = "default"
NOTHING_FOUND = "Nothing is known about this; a run on it would start from scratch."
UNKNOWN = 1

Work = Callable[[ObservationService, argparse.Namespace], Awaitable[int]]


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its actions."""
    parser = subparsers.add_parser(
        "observations",
        help="list, search and rate what finished runs left behind",
        description="Each action opens the store in --store, where a memory of observations lives.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _action(actions, "list", "the latest observations, newest first", list_observations)
    listed.add_argument("--limit", type=int, default=20, help="how many at most (default 20)")
    found = _action(actions, "search", "what a planner would learn about TASK, with every number of its rank", search)
    found.add_argument("task", metavar="TASK")
    found.add_argument("--top-k", type=int, default=10, help="how many at most (default 10)")
    rated = _action(actions, "rate", "rate a run from -2 to 2; the next search goes by it", rate)
    rated.add_argument("id", metavar="RUN")
    rated.add_argument("rating", metavar="RATING", type=float)
    _action(actions, "reindex", "rebuild the vector index from SQLite", reindex)


async def list_observations(service: ObservationService, options: argparse.Namespace) -> int:
    """Print observations, newest first."""
    found = await service.recent(options.owner, options.limit)
    rows = [_row(one) for one in found]
    _print(options, rows, ("time", "run", "score", "title"), [_json(one) for one in found], "No run is stored yet.")
    return 0


async def search(service: ObservationService, options: argparse.Namespace) -> int:
    """Print what is found, with the numbers of each rank: rank = (0.7 sim + 0.3 qual) * q_adjust."""
    found = await service.search(options.task, options.owner, options.top_k)
    rows = [_explained(entry) for entry in found]
    headers = ("run", "title", "sim", "qual", "q_adjust", "rank", "found by")
    data = [{**_json(entry.observation), **asdict(entry.rank)} for entry in found]
    _print(options, rows, headers, data, NOTHING_FOUND)
    return 0


async def rate(service: ObservationService, options: argparse.Namespace) -> int:
    """Rate a run; an unknown one is exit code 1."""
    if not await service.rate(options.id, options.rating, options.owner):
        sys.stderr.write(f"{options.owner!r} has no run {options.id!r}; `observations list` names those there are\n")
        return UNKNOWN
    sys.stdout.write(f"{options.id}: rated {options.rating:g}\n")
    return 0


async def reindex(service: ObservationService, _: argparse.Namespace) -> int:
    """Rebuild the vector index."""
    sys.stdout.write(f"{await service.reindex()} observations indexed\n")
    return 0


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, work: Work
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text)
    parser.add_argument("--store", type=Path, required=True, metavar="DIR", help="the folder of the memory")
    parser.add_argument("--owner", default=DEFAULT_OWNER, help=f"whose runs (default '{DEFAULT_OWNER}')")
    parser.add_argument("--embedder", default=MINILM, help=f"the store's model (default {MINILM})")
    parser.add_argument("--ollama-host", default=os.environ.get("OLLAMA_HOST", "http://127.0.0.1:11434"), metavar="URL")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(run=lambda options: asyncio.run(_with_service(work, options)))
    return parser


async def _with_service(work: Work, options: argparse.Namespace) -> int:
    if not (options.store / OBSERVATIONS_FILE).exists():
        raise InputError(f"{options.store}: no observations are stored here; name the folder with --store")
    service = await open_observations(
        options.store,
        embedder=embedders.make_embedder(options.embedder, ollama_host=options.ollama_host),
        chat=None,
        clock=SystemClock(),
        new_id=str,
        config=ObservationsConfig(),
    )
    try:
        return await work(service, options)
    finally:
        await service.close()


def _row(observation: Observation) -> tuple[str, ...]:
    moment = observation.timestamp.isoformat(timespec="seconds")
    return (moment, observation.id, score_text(observation.final_score), observation.title)


def _explained(entry: Ranked) -> tuple[str, ...]:
    numbers = (entry.rank.sim, entry.rank.qual, entry.rank.q_adjust, entry.rank.rank)
    by = "words" if entry.by_keyword else "meaning"
    return (entry.observation.id, entry.observation.title, *(f"{number:.4f}" for number in numbers), by)


def _json(observation: Observation) -> dict[str, object]:
    return {**asdict(observation), "timestamp": observation.timestamp.isoformat()}


def _print(
    options: argparse.Namespace, rows: Sequence[Sequence[str]], headers: Sequence[str], data: object, empty: str
) -> None:
    if options.json:
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write((tabulate(rows, headers, disable_numparse=True) if rows else empty) + "\n")
