"""What a command of `memstory` is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill
from typing import Final

OK: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2

_WIDTH: Final = 88


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: `about` and `examples` for its help, `options` to declare arguments, `run` to do it.

    In `about`, a line that begins with a space stays as it is, the others are wrapped; `exit_codes` ends the help. With
    `passes_on`, what was typed is not parsed but given to `run` as `passed_on`.
    """

    about: str
    examples: str
    exit_codes: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    passes_on: bool = False


def parser_of(name: str, command: Command) -> argparse.ArgumentParser:
    """Return the parser of one command, whose help ends with its examples and exit codes."""
    parser = argparse.ArgumentParser(
        prog=f"memstory {name}",
        description=_wrapped(command.about),
        epilog=f"{command.examples.strip()}\n\n{_wrapped(command.exit_codes)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.options(parser)
    return parser


def _wrapped(text: str) -> str:
    return "\n".join(line if line.startswith(" ") else fill(line, _WIDTH) for line in text.split("\n"))


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of a table")


def add_story_paths(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which stories are meant."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="story files, or folders to search (default: the current folder)"
    )
    parser.add_argument("--bundled", action="store_true", help="the stories that come with memstory")
