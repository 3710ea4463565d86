"""What can be typed behind `memstory-reference`. Nothing here needs an extra: help is shown without any."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from memstory_reference.adapters.embedding import weights
from memstory_reference.commands.options import (
    add_bus_option,
    add_chat_option,
    add_mode_option,
    add_owner_options,
    add_settings_option,
    add_store_options,
    add_system_option,
)
from memstory_reference.composition.embedders import MINILM
from memstory_reference.input_checks import DEFAULT_OWNER
from memstory_reference.systems.layers.records import Layer
from memstory_reference.systems.manager.memories import MemoryType
from memstory_reference.systems.observations.observation import KIND, TASK_TYPES
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.systems.turns.turn import KINDS as TURN_KINDS

KINDS = tuple(dict.fromkeys(("topic", *map(str, Layer), *map(str, MemoryType), "working", *TURN_KINDS, KIND)))

Parser: TypeAlias = argparse.ArgumentParser
Parsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001  (it has no public name)


def add_chat(subparsers: Parsers) -> None:
    """Add `chat`."""
    text = "talk with a memory that stays: it is there again in the next conversation"
    parser = subparsers.add_parser("chat", help=text, description=_sentence(text))
    add_system_option(parser)
    add_store_options(parser)
    add_owner_options(parser)
    add_mode_option(parser)
    add_chat_option(parser)
    parser.add_argument("--toolset", choices=("single", "dual"), help="topics: four tools of one purpose, or two")
    add_bus_option(parser, by_default=False)


def add_memory(subparsers: Parsers) -> None:
    """Add `memory` and its actions."""
    text = "list, search, export and forget memories"
    parser = subparsers.add_parser("memory", help=text, description=_sentence(text))
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _add_memory_action(actions, "list", "list what is remembered")
    listed.add_argument("--kind", choices=KINDS, help="one kind only, of those that the memory has")
    listed.add_argument("--archived", action="store_true", help="with what is kept and no longer found")
    found = _add_memory_action(actions, "search", "find what was said by meaning")
    found.add_argument("text", help="what to look for")
    found.add_argument("--top-k", type=int, metavar="N", help="how many at most")
    found.add_argument("--min-score", type=float, metavar="SCORE", help="lowest score, where the memory takes one")
    shown = _add_memory_action(actions, "show", "show one memory in full")
    shown.add_argument("name", help="a topic, an id, or the first 8 or more characters of an id")
    gone = _add_memory_action(actions, "forget", "delete memories, after asking", aliases=["delete"])
    gone.add_argument("names", nargs="*", metavar="NAME", help="topics or ids, as for show")
    gone.add_argument("--all", action="store_true", dest="everything", help="all memories of the owner")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    taken = _add_memory_action(actions, "export", "write one JSON object per line")
    taken.add_argument("--output", metavar="FILE", type=Path, help="a new file; without it, to the terminal or pipe")
    put = _add_memory_action(actions, "import", "add what export wrote, all of the file or nothing")
    put.add_argument(
        "file", metavar="FILE", type=Path, help="a file that 'memory export' wrote, of the same kind of memory"
    )
    old = _add_memory_action(actions, "migrate", "manager: take over rows of its first version")
    old.add_argument("file", metavar="FILE", type=Path, help="old rows, a line of JSON each")
    copied = _add_memory_action(
        actions, "backup", "copy the memory to a new folder, while it is used too; a copy of the copy restores it"
    )
    copied.add_argument(
        "--output", metavar="DIR", type=Path, required=True, help="a new folder, which --store can name"
    )
    _add_memory_action(actions, "audit", "layers: the crisis log, of one owner or of everybody")
    _add_memory_action(actions, "feedback", "what was rated, or said of sessions: topics, observations, layers")
    purged = _add_memory_action(
        actions,
        "purge",
        "delete what is past its retention period: engrams of topics, crisis records of layers",
    )
    purged.add_argument("--days", type=float, metavar="N", help="topics: instead of retention_days from the settings")
    rated = _add_memory_action(actions, "rate", "rate a past turn of topics or an observation: better ones rank first")
    rated.add_argument("name", help="an id, or the first 8 or more characters of one")
    rated.add_argument(
        "value", type=float, help="topics: from -1, misleading, to 1, useful; observations: from -2 to 2"
    )
    _add_memory_action(actions, "reindex", "embed every text again, by another model")
    job = _add_memory_action(actions, "run", "run a job of the memory, such as compress or cleanup")
    job.add_argument("job", metavar="JOB", help="its name; a wrong one is answered with all that there are")
    job.add_argument("arguments", metavar="NAME=VALUE", nargs="*", help="what the job takes")
    _add_memory_action(actions, "status", "show how much is remembered, and the settings")
    for name, text in (("archive", "take memories out of use without deleting them"), ("restore", "use them again")):
        moved = _add_memory_action(actions, name, f"layers: {text}")
        moved.add_argument("names", nargs="+", metavar="ID", help="ids, or the first 8 or more characters of them")


def _add_memory_action(actions: Parsers, name: str, text: str, aliases: Sequence[str] = ()) -> Parser:
    parser = actions.add_parser(name, help=text, description=_sentence(text), aliases=aliases)
    # An alias too is the action that it stands for.
    parser.set_defaults(action=name)
    add_system_option(parser)
    add_store_options(parser)
    add_owner_options(parser)
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    return parser


def add_observations(subparsers: Parsers) -> None:
    """Add `observations` and its actions."""
    parser = subparsers.add_parser(
        "observations",
        help="store a finished run or start one, and search what runs found; 'memory' does the rest",
        description="Each action opens the store in --store, where a memory of observations lives.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    found = _add_observations_action(
        actions, "search", "what a planner would learn about TASK, with every number of its rank"
    )
    found.add_argument("task", metavar="TASK")
    found.add_argument("--top-k", type=int, help=f"how many at most (default {ObservationsSettings().top_k})")
    found.add_argument("--context", action="store_true", help="print only the text that a planner reads")
    stored = _add_observations_action(
        actions, "store", "store a finished run: its output is summarised, its summary kept"
    )
    stored.add_argument("task", metavar="TASK")
    stored.add_argument("--output", required=True, metavar="FILE", help="what the run wrote; - reads it from a pipe")
    carried = _add_observations_action(
        actions, "run", "carry out TASK on a folder of texts: plan, read what is new, write, store"
    )
    carried.add_argument("task", metavar="TASK")
    carried.add_argument("--corpus", required=True, type=Path, metavar="DIR", help="texts to read: *.md and *.txt")
    for writing in (stored, carried):
        writing.add_argument("--run-id", metavar="ID", help="id of the run (default: a new one)")
        writing.add_argument("--score", type=float, metavar="0..10", help="the reviewer's score")
        writing.add_argument("--type", default=TASK_TYPES[-1], choices=TASK_TYPES, help="kind of task")
        writing.add_argument(
            "--chat", metavar="MODEL", help="ollama:NAME, openai:NAME, replay:FILE (default: by rules)"
        )


def _add_observations_action(actions: Parsers, name: str, text: str) -> Parser:
    parser = actions.add_parser(name, help=text, description=text)
    text = "the folder of the memory, or postgresql://…"
    parser.add_argument("--store", required=True, metavar="DIR", help=text)
    parser.add_argument("--owner", default=DEFAULT_OWNER, help=f"whose runs (default '{DEFAULT_OWNER}')")
    parser.add_argument("--embedder", default=MINILM, help=f"the store's model (default {MINILM})")
    parser.add_argument("--ollama-host", metavar="URL")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    return parser


def add_serve(subparsers: Parsers) -> None:
    """Add `serve` and its parts."""
    text = "serve one part of a memory system to other processes, over NATS"
    parser = subparsers.add_parser("serve", help=text, description=_sentence(text))
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    memory = _add_part(parts, "memory", "topics: the memory; one process has the store")
    add_store_options(memory)
    tools = _add_part(parts, "tools", "topics: the tools that a model may call; any number of processes")
    tools.add_argument("--toolset", choices=("single", "dual"), help="four tools of one purpose, or two")
    add_settings_option(tools)
    agent = _add_part(parts, "agent", "topics: the agent that talks; one process")
    add_chat_option(agent)
    agent.add_argument("--embedder", metavar="NAME", help="what the offline stand-in compares texts by")
    add_settings_option(agent)
    layers = _add_part(parts, "layers", "layers: turns and sessions; any number of processes on one Postgres")
    add_store_options(layers)
    add_chat_option(layers)
    add_mode_option(layers)
    _add_http(parts)
    text = "print the configuration of a NATS server that lets each part do what it needs, and nobody else in"
    config = parts.add_parser("config", help=text, description=_sentence(text))
    config.add_argument("--host", default="127.0.0.1", help="where the server listens (default: 127.0.0.1)")
    config.add_argument("--port", type=int, default=4222, help="its port (default: 4222)")


def _add_part(parts: Parsers, name: str, text: str) -> Parser:
    parser = parts.add_parser(name, help=text, description=_sentence(text))
    parser.set_defaults(system="layers" if name == "layers" else "topics")
    add_bus_option(parser, by_default=True)
    return parser


def _add_http(parts: Parsers) -> None:
    text = "a memory over HTTP: turns, memories, jobs, and a page of what is remembered, on this machine"
    parser = parts.add_parser("http", help=text, description=_sentence(text))
    add_system_option(parser, "layers")
    add_store_options(parser)
    add_chat_option(parser)
    add_mode_option(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default: %(default)s). The service asks nobody who they are: beyond this "
        "machine put a server before it that does",
    )
    parser.add_argument("--port", type=int, default=8765, help="its port (default: %(default)s)")


def add_mcp(subparsers: Parsers) -> None:
    """Add `mcp`."""
    parser = subparsers.add_parser(
        "mcp",
        help="serve a memory to an MCP client over stdin and stdout",
        description="Serve the tools of a memory, to store, search and forget, to the MCP client that starts it.",
    )
    add_system_option(parser, "manager")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as YAML, of the manager under `memory:`")
    parser.add_argument("--path", metavar="FOLDER", help="where the memory lies, instead of what the settings say")
    parser.add_argument("--owner", metavar="NAME", help=f"whose memories they are (default: {DEFAULT_OWNER})")


def add_models(subparsers: Parsers) -> None:
    """Add `models` and its actions."""
    parser = subparsers.add_parser("models", help="fetch and find the embedding model's weights")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("pull", help=f"fetch the weights of {weights.MODEL} (90 MB), check and keep them")
    actions.add_parser("list", help="say which models run here and where their weights are")
    actions.add_parser("path", help="print the folder of the weights")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
