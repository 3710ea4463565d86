"""`memstory …`: write stories, check them, run them, and look at what came out.

Each command is a module below `memstory.commands`, imported only when it is typed, so that `--help` is quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Final, NoReturn

from memstory.commands.command import FINDINGS, OK, USAGE, Command, parser_of
from memstory.contract.errors import MemstoryError
from memstory.contract.texts import did_you_mean

_GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "authoring": {
        "new": "write a story, a corpus or a target to start from",
        "validate": "check stories without running them",
        "list": "list stories with what they need",
        "explain": "say what a story needs and which targets can run it",
        "probe": "find out what a memory can do by trying it, and print the declaration",
        "steps": "list the steps with what they take and return",
        "matchers": "list what a story can assert about a result",
        "schema": "write the JSON Schema by which editors complete and check stories",
        "mcp": "look at the tools of an MCP server, and draft a target from them",
    },
    "running": {
        "run": "run stories with pytest",
        "explore": "look for faults that no story asks for, with programs drawn from a seed",
        "proxy": "record, replay, count or script the language model of a memory",
        "data": "fetch the sets of conversations that are known by name, such as locomo",
        "demo": "run five stories on three memories, and look at a failure and the page",
    },
    "results": {
        "show": "show what happened in a recorded case, step by step",
        "rejudge": "judge the recordings of a run again, without the target",
        "submit": "pack a run, so that somebody else can judge it again",
        "verify": "judge the recordings of a pack again, and say what cannot be checked",
        "merge": "put the shards of one run together",
        "compare": "put targets and runs side by side",
        "gate": "compare a run with its baseline",
        "report": "write report.md and report.html again, or the report of a run that was killed",
        "export": "write a run in files that other tools read, CSV and TREC",
        "badge": "print a badge: how much leaked and was lost",
    },
}
COMMANDS: Final[Mapping[str, str]] = {name: line for group in _GROUPS.values() for name, line in group.items()}
"""Every command with its line in `memstory --help`; the module of the same name has the rest, but for `_WORDS`."""

_WORDS: Final = ("steps", "matchers", "schema")
"""The commands that print the words of the language, from the one module `words`."""

INTERRUPTED: Final = 130

EPILOG: Final = f"""\
examples:
  memstory demo                                  see a leak found, in a few seconds
  memstory new story coffee                      begin with a story that runs
  memstory validate                              check every story below this folder
  memstory run --target control:oracle           run them on a perfect memory
  memstory show reports/latest S5                see what happened in one

exit codes: {OK} fine, {FINDINGS} something was found wrong, {USAGE} the command could not be carried out;
'memstory run' ends with pytest's own.

'memstory COMMAND --help' says more, with examples.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error made on purpose is one line on stderr."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    name = typed[0] if typed else ""
    if name not in COMMANDS:
        _without_command(typed)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A memory may answer anything, and a terminal may know less than Unicode.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _carry_out(name, typed[1:])
    except BrokenPipeError:
        # The reader of our output has seen enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (MemstoryError, OSError) as error:
        from memstory.reporting.document import visible  # noqa: PLC0415  (a command that goes well does not need it)

        said = str(error)
        if isinstance(error, OSError) and error.strerror:
            said = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
        sys.stderr.write(f"memstory {name}: {visible(said)}\n")
        return USAGE
    except KeyboardInterrupt:
        sys.stderr.write(f"memstory {name}: interrupted\n")
        return INTERRUPTED


def load_command(name: str) -> Command:
    """Return the command of that name."""
    group = next(group for group, lines in _GROUPS.items() if name in lines)
    module = import_module(f"memstory.commands.{group}.{'words' if name in _WORDS else name}")
    command: Command = module.COMMANDS[name] if name in _WORDS else module.COMMAND
    return command


def _carry_out(name: str, typed: Sequence[str]) -> int:
    command = load_command(name)
    parser = parser_of(name, command)
    if command.passes_on and not {"-h", "--help"} & set(typed[:1]):
        return command.run(argparse.Namespace(passed_on=list(typed)))
    return command.run(parser.parse_args(typed))


def _without_command(typed: Sequence[str]) -> NoReturn:
    parser = argparse.ArgumentParser(
        prog="memstory",
        description="Stories and evaluation for the memory of AI agents.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    from importlib.metadata import version  # noqa: PLC0415  (it brings the parser of e-mails)

    parser.add_argument("--version", action="version", version=f"memstory {version('memstory')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    if not typed:
        parser.print_help(sys.stderr)
        parser.exit(USAGE)
    if not typed[0].startswith("-"):
        parser.error(f"unknown command '{typed[0]}'.{did_you_mean(typed[0], COMMANDS)} Known: {', '.join(COMMANDS)}.")
    parser.parse_args(typed)
    parser.error("no command was given")
