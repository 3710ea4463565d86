"""`memstory-reference`: the memory systems at the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Final

from memstory.contract.errors import MemstoryError
from memstory_reference.commands import parsers
from memstory_reference.composition.extras import missing_extra

COMMANDS: Final = ("chat", "memory", "serve", "observations", "mcp", "models")
"""Each is a module of `commands`; its `run` takes what was typed, and returns the exit code."""

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
    parsers.add_chat(subparsers)
    parsers.add_memory(subparsers)
    parsers.add_serve(subparsers)
    parsers.add_observations(subparsers)
    parsers.add_mcp(subparsers)
    parsers.add_models(subparsers)
    for name, subparser in subparsers.choices.items():
        subparser.epilog = _ending(EXAMPLES.get(name, ""))
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _run(parsed: argparse.Namespace) -> int:
    """Run a command, which is imported only now: help needs no extra."""
    try:
        module = import_module(f"memstory_reference.commands.{parsed.command}")
        return int(module.run(parsed))
    except ModuleNotFoundError as error:
        problem = missing_extra(error)
        if problem is None:
            raise
        raise problem from error


def _ending(examples: str) -> str:
    return f"examples:{examples}\n\n{EXIT_CODES}"
