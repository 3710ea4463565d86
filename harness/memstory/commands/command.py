"""What a command of `memstory` is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill
from typing import Final

from memstory.contract.target import Tree

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
        description=_wrap(command.about),
        epilog=f"{command.examples.strip()}\n\n{_wrap(command.exit_codes)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.options(parser)
    return parser


def _wrap(text: str) -> str:
    return "\n".join(line if line.startswith(" ") else fill(line, _WIDTH) for line in text.split("\n"))


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of a table")


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add `--target-option NAME=VALUE`, as often as one likes: pairs."""
    parser.add_argument(
        "--target-option", action="append", default=[], type=option_pair, metavar="NAME=VALUE",
        help="option for the targets, such as embedder=words; VALUE is JSON or plain text",
    )  # fmt: skip


def option_pair(text: str) -> tuple[str, Tree]:
    """Return name and value of `NAME=VALUE`, where the value is JSON or plain text; anything else ends the command."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE, such as top_k=5")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def whole_number(text: str) -> int:
    """Return the number that an option has, 1 or more; anything else ends the command."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


def price_pair(text: str) -> tuple[float, float]:
    """Return the two prices of `PROMPT/ANSWER`, in dollars for a million tokens; anything else ends the command."""
    prompt, _, answer = text.partition("/")
    try:
        return number_above(-1)(prompt), number_above(-1)(answer)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no price: dollars for a million tokens of prompts and of answers, such as 0.15/0.60"
        ) from None


def number_above(least: float) -> Callable[[str], float]:
    """Return what reads an option that is a finite number above `least`."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least
        if not least < number < float("inf"):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number above {least:g}")
        return number

    return read


def add_story_paths(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which stories are meant."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="story files, or folders to search (default: the current folder)"
    )
    parser.add_argument("--bundled", action="store_true", help="the stories that come with memstory")
