"""`memstory-reference`: the memory systems at the command line. Nothing here needs an extra: help is shown without."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from memstory.contract.errors import MemstoryError
from memstory_reference.adapters.embedding import weights
from memstory_reference.composition.embedders import MINILM
from memstory_reference.composition.extras import require_extras
from memstory_reference.input_checks import DEFAULT_OWNER
from memstory_reference.system_memory import SYSTEM_NAMES
from memstory_reference.systems.layers.records import Layer
from memstory_reference.systems.manager.memories import MemoryType
from memstory_reference.systems.observations.observation import KIND, TASK_TYPES
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.systems.turns.turn import KINDS as TURN_KINDS

KINDS = tuple(dict.fromkeys(("topic", *map(str, Layer), *map(str, MemoryType), "working", *TURN_KINDS, KIND)))

Parser: TypeAlias = argparse.ArgumentParser
Parsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001  (it has no public name)

BUS_VARIABLE = "MEMSTORY_NATS"
DEFAULT_BUS = "nats://127.0.0.1:4222"

FAILED = 1
INTERRUPTED = 130

EXAMPLES: Final[Mapping[str, str]] = {
    "chat": """
  memstory-reference chat                                    with the topics memory, by rules
  memstory-reference chat --chat ollama:qwen3:4b             with a language model
  memstory-reference chat --system layers --owner ann        with another memory""",
    "memory": """
  memstory-reference memory list                             what is remembered here
  memstory-reference memory search 'where I live' --top-k 3
  memstory-reference memory forget user.name
  memstory-reference memory export --output backup.jsonl
  memstory-reference memory run compress until_quiet=true --system pipeline""",
    "serve": """
  memstory-reference serve http --store .layers              the layers memory over HTTP
  memstory-reference serve memory                            one part of topics, over NATS""",
    "observations": """
  memstory-reference observations run "Control LLM costs" --corpus papers --store runs
  memstory-reference observations search "LLM cost management" --store runs
  memstory-reference memory rate run-17 1 --system observations --store runs""",
    "mcp": """
  memstory-reference mcp --path memory --owner ann
  memstory mcp inspect memstory-reference mcp --path memory""",
    "models": """
  memstory-reference models pull                             once, where the network is
  memstory-reference models list""",
}
"""Lines for the end of each command's help."""

EXIT_CODES: Final = (
    f"exit codes: 0 fine, {FAILED} it failed, and stderr says why, 2 wrong command line, {INTERRUPTED} interrupted"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. What went wrong is one line on stderr."""
    parser = make_parser()
    parsed, more = parser.parse_known_args(arguments)
    if more and (
        (parsed.command, vars(parsed).get("action")) != ("memory", "run") or any("=" not in one for one in more)
    ):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        # What a job takes may stand behind the options, too.
        parsed.arguments += more
    try:
        code = _run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output, such as `head`, has enough. What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemstoryError, OSError) as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="memstory-reference",
        description="Memory systems for agents, on this machine.",
        epilog=_ending("".join(EXAMPLES[name] for name in ("chat", "memory"))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('memstory')}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, add in COMMANDS.items():
        subparser = add(subparsers)
        subparser.epilog = _ending(EXAMPLES[name])
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _run(parsed: argparse.Namespace) -> int:
    """Run a command, which is imported only now: help needs no extra."""
    with require_extras():
        module = import_module(f"memstory_reference.commands.{parsed.command}")
        return int(module.run(parsed))


def _ending(examples: str) -> str:
    return f"examples:{examples}\n\n{EXIT_CODES}"


def _add_chat(subparsers: Parsers) -> Parser:
    text = "talk with a memory that stays: it is there again in the next conversation"
    parser = _add_parser(subparsers, "chat", text)
    _add_system_option(parser)
    _add_store_options(parser)
    _add_owner_options(parser)
    _add_mode_option(parser)
    _add_chat_option(parser)
    parser.add_argument("--toolset", choices=("single", "dual"), help="topics: four tools of one purpose, or two")
    _add_bus_option(parser, by_default=False)
    return parser


def _add_memory(subparsers: Parsers) -> Parser:
    text = "list, search, export and forget memories"
    parser = _add_parser(subparsers, "memory", text)
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
    return parser


def _add_memory_action(actions: Parsers, name: str, text: str, aliases: Sequence[str] = ()) -> Parser:
    parser = _add_parser(actions, name, text, aliases=aliases)
    # An alias too is the action that it stands for.
    parser.set_defaults(action=name)
    _add_system_option(parser)
    _add_store_options(parser)
    _add_owner_options(parser)
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    return parser


def _add_observations(subparsers: Parsers) -> Parser:
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
    return parser


def _add_observations_action(actions: Parsers, name: str, text: str) -> Parser:
    parser = actions.add_parser(name, help=text, description=text)
    text = "the folder of the memory, or postgresql://…"
    parser.set_defaults(system="observations")
    parser.add_argument("--store", required=True, metavar="DIR", help=text)
    parser.add_argument("--owner", default=DEFAULT_OWNER, help=f"whose runs (default '{DEFAULT_OWNER}')")
    parser.add_argument("--embedder", default=MINILM, help=f"the store's model (default {MINILM})")
    parser.add_argument("--ollama-host", metavar="URL")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    return parser


def _add_serve(subparsers: Parsers) -> Parser:
    text = "serve one part of a memory system to other processes, over NATS"
    parser = _add_parser(subparsers, "serve", text)
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    memory = _add_part(parts, "topics", "memory", "the memory; one process has the store")
    _add_store_options(memory)
    tools = _add_part(parts, "topics", "tools", "the tools that a model may call; any number of processes")
    tools.add_argument("--toolset", choices=("single", "dual"), help="four tools of one purpose, or two")
    _add_settings_option(tools)
    agent = _add_part(parts, "topics", "agent", "the agent that talks; one process")
    _add_chat_option(agent)
    agent.add_argument("--embedder", metavar="NAME", help="what the offline stand-in compares texts by")
    _add_settings_option(agent)
    layers = _add_part(parts, "layers", "layers", "turns and sessions; any number of processes on one Postgres")
    _add_store_options(layers)
    _add_chat_option(layers)
    _add_mode_option(layers)
    _add_http(parts)
    text = "print the configuration of a NATS server that lets each part do what it needs, and nobody else in"
    config = _add_parser(parts, "config", text)
    config.add_argument("--host", default="127.0.0.1", help="where the server listens (default: 127.0.0.1)")
    config.add_argument("--port", type=int, default=4222, help="its port (default: 4222)")
    return parser


def _add_part(parts: Parsers, system: str, name: str, text: str) -> Parser:
    parser = _add_parser(parts, name, f"{system}: {text}")
    parser.set_defaults(system=system)
    _add_bus_option(parser, by_default=True)
    return parser


def _add_http(parts: Parsers) -> None:
    text = "a memory over HTTP: turns, memories, jobs, and a page of what is remembered, on this machine"
    parser = _add_parser(parts, "http", text)
    _add_system_option(parser, "layers")
    _add_store_options(parser)
    _add_chat_option(parser)
    _add_mode_option(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default: %(default)s). The service asks nobody who they are: beyond this "
        "machine put a server before it that does",
    )
    parser.add_argument("--port", type=int, default=8765, help="its port (default: %(default)s)")


def _add_mcp(subparsers: Parsers) -> Parser:
    parser = subparsers.add_parser(
        "mcp",
        help="serve a memory to an MCP client over stdin and stdout",
        description="Serve the tools of a memory, to store, search and forget, to the MCP client that starts it.",
    )
    _add_system_option(parser, "manager")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as YAML, of the manager under `memory:`")
    parser.add_argument("--path", metavar="FOLDER", help="where the memory lies, instead of what the settings say")
    parser.add_argument("--owner", metavar="NAME", help=f"whose memories they are (default: {DEFAULT_OWNER})")
    return parser


def _add_models(subparsers: Parsers) -> Parser:
    parser = subparsers.add_parser("models", help="fetch and find the embedding model's weights")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("pull", help=f"fetch the weights of {weights.MODEL} (90 MB), check and keep them")
    actions.add_parser("list", help="say which models run here and where their weights are")
    actions.add_parser("path", help="print the folder of the weights")
    return parser


def _add_parser(parsers: Parsers, name: str, text: str, **more: Any) -> Parser:
    """Add a parser whose line in the list of its siblings is its description, too."""
    return parsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", **more)


def _add_system_option(parser: argparse.ArgumentParser, default: str = SYSTEM_NAMES[0]) -> None:
    """Add the option that says which memory is meant."""
    parser.add_argument("--system", choices=SYSTEM_NAMES, default=default, help="which memory (default: %(default)s)")


def _add_owner_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whose memory is meant."""
    parser.add_argument("--owner", "--user-id", metavar="NAME", help="whose memory it is, across all conversations")
    parser.add_argument(
        "--thread-id",
        metavar="ID",
        help="the conversation; of layers it owns the memory where no owner is named",
    )


def _add_mode_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how durable the memory is."""
    parser.add_argument(
        "--memory-mode",
        metavar="MODE",
        help="layers: local (the default), guest or incognito (nothing is written), synced (as local for now)",
    )


def _add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which memory is meant."""
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="folder of the memory (default: .chroma here for topics, ~/.reachy/memory for manager, else a dot and its "
        "name here), or postgresql://…",
    )
    parser.add_argument(
        "--embedder",
        metavar="NAME",
        help="all-MiniLM-L6-v2 (the default), nomic-embed-text, ollama:NAME, openai:NAME; layers: or none",
    )
    _add_settings_option(parser)


def _add_settings_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a file of settings."""
    parser.add_argument("--settings", metavar="FILE", type=Path, help="settings of the memory, as memory.yaml has them")


def _add_chat_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the language model."""
    parser.add_argument(
        "--chat",
        metavar="MODEL",
        help="offline (the default), ollama:NAME, openai:NAME (see OPENAI_BASE_URL), replay:FILE",
    )


def _add_bus_option(parser: argparse.ArgumentParser, *, by_default: bool) -> None:
    """Add the option; a command that can do without a bus has none unless it is typed."""
    default = os.environ.get(BUS_VARIABLE, DEFAULT_BUS) if by_default else None
    ends = "; without it everything runs in this process"
    if by_default:
        ends = f" (default: {BUS_VARIABLE}, else {DEFAULT_BUS})"
    parser.add_argument(
        "--bus",
        metavar="URL",
        default=default,
        help=f"the NATS server on which processes meet, as nats://HOST:PORT or tls://USER:PASSWORD@HOST:PORT{ends}",
    )


COMMANDS: Final[Mapping[str, Callable[[Parsers], Parser]]] = {
    "chat": _add_chat,
    "memory": _add_memory,
    "serve": _add_serve,
    "observations": _add_observations,
    "mcp": _add_mcp,
    "models": _add_models,
}
"""Each is a module of `commands`, too; its `run` takes what was typed, and returns the exit code."""
