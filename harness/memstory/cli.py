"""`memstory …`: what is done with results after a run.

A command is a `Command` in `COMMANDS`: its options and what it does, as an exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memstory.errors import MemstoryError
from memstory.reporting import report_from_spool

SETUP_EXIT_CODE: Final = 4
"""The same as pytest's for a wrong command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One subcommand: `summary` for `--help`, `options` to declare arguments, `run` to do it."""

    summary: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error made on purpose is one line on stderr."""
    parser = argparse.ArgumentParser(prog="memstory", description="Stories and evaluation for agent memories.")
    subparsers = parser.add_subparsers(title="commands", dest="command", required=True)
    for name, command in COMMANDS.items():
        command.options(subparsers.add_parser(name, help=command.summary, description=command.summary))
    chosen = parser.parse_args(arguments)
    try:
        return COMMANDS[chosen.command].run(chosen)
    except (MemstoryError, OSError) as error:
        sys.stderr.write(f"memstory {chosen.command}: {error}\n")
        return SETUP_EXIT_CODE


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the folder of a run, such as reports/latest")


def _report(chosen: argparse.Namespace) -> int:
    sys.stdout.write(f"{report_from_spool(chosen.folder)}\n")
    return 0


COMMANDS: Final = {
    "report": Command(
        summary="write report.md again, or the report of a run that was killed", options=_report_options, run=_report
    ),
}
