"""`memstory submit`: a run in one file that somebody else can judge again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from memstory.bundled import named_path
from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.commands.results.results_files import recorded_run_at, run_folder
from memstory.contract.errors import SetupError
from memstory.language.stories import StoryTable, read_story_file
from memstory.results.folder.pack import rows_name, write_pack
from memstory.results.folder.recordings_file import RECORDINGS_NAME
from memstory.results.runs import Run, quantity

ENDING: Final = ".memstory.zip"


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"the pack (default: RUN{ENDING} beside the folder)"
    )


def _run(chosen: argparse.Namespace) -> int:
    run, folder = recorded_run_at(chosen.results), run_folder(chosen.results)
    if not run.complete:
        raise SetupError(f"{folder} holds a run that was cut short: run it to its end, '--resume' goes on with one")
    output: Path = chosen.output or folder.with_name(f"{folder.resolve().name}{ENDING}")
    write_pack(output, run, (folder / RECORDINGS_NAME).read_bytes(), _stories(run))
    say(f"{output}: {quantity(len(run.cases), 'case')}. Its texts are in it: look at what you give away.")
    say(f"Anybody can judge it again: memstory verify {output}")
    return OK


def _stories(run: Run) -> dict[str, str]:
    """Return the texts of the story files by a short name each, with the files of rows that they name."""
    places = dict.fromkeys(case.where.rsplit(":", 2)[0] for case in run.cases)
    found: dict[str, str] = {}
    for place in places:
        try:
            text = named_path(place).read_text("utf-8")
        except OSError as error:
            raise SetupError(
                f"{place}, a story of the run, cannot be read from here: type this where it ran"
            ) from error
        name, number = Path(place).name, 1
        while name in found:
            number += 1
            name = f"{number}-{Path(place).name}"
        found[name] = text
        for table in read_story_file(named_path(place), anywhere=True):
            if isinstance(table, StoryTable):
                rows = b"".join(table.rows.lines(table.rows.name, table.rows.mark))
                found[rows_name(name, table.rows.name)] = rows.decode()
    return found


COMMAND = Command(
    about=(
        "Pack a run for somebody else: results, recordings, the fingerprint, the stories, and the digests of stories "
        "and data, each file with its hash. What was remembered and answered is in the recordings; run with "
        "--redact texts where that must not be, but then steps cannot be judged again."
    ),
    examples="""
examples:
  memstory submit reports/latest
  memstory submit reports/latest --output mine.memstory.zip
""",
    exit_codes=("exit codes: 0 packed, 2 there is no whole run with recordings, or nothing can be written"),
    options=_options,
    run=_run,
)
