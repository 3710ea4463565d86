"""`memstory report`: the report of a run that is over, or was killed."""

from __future__ import annotations

import argparse
from pathlib import Path

from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.contract.errors import SetupError
from memstory.reporting.writing import report_from_spool


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of a run, such as reports/latest")


def _run(chosen: argparse.Namespace) -> int:
    if not chosen.folder.is_dir():
        raise SetupError(f"no folder {chosen.folder}: name the folder of a run, such as reports/latest")
    say(report_from_spool(chosen.folder))
    return OK


COMMAND = Command(
    about=(
        "Write the report of a killed run from the cases that it had finished. For a run that ended normally, write "
        "report.md and report.html again from results.json."
    ),
    examples="""
examples:
  memstory report reports/latest
""",
    exit_codes=("exit codes: 0 fine, 2 the folder contains no run, or one of another version"),
    options=_options,
    run=_run,
)
