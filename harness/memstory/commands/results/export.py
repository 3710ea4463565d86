"""`memstory export`: a run in files that other tools read."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.commands.results.results_files import run_at
from memstory.contract.errors import SetupError
from memstory.reporting.csv_files import csv_files
from memstory.reporting.document import visible
from memstory.reporting.trec import trec_files
from memstory.results.folder.whole_files import write_text
from memstory.results.runs import Run, quantity

_FORMS: Final[Mapping[str, Callable[[Run], Mapping[str, str]]]] = {"csv": csv_files, "trec": trec_files}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("form", choices=_FORMS, help="csv: a row for each case and each score; trec: qrels and runs "
                        "for trec_eval, ir_measures and ranx")  # fmt: skip
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or a results.json")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of the files (default: one of the "
                        "form's name in that folder)")  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    files = _FORMS[chosen.form](run_at(chosen.results))
    if not files:
        raise SetupError(f"{chosen.results} holds no retrieval: run stories that have one")
    folder = chosen.results if chosen.results.is_dir() else chosen.results.parent
    output: Path = chosen.output or folder / chosen.form
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A name may hold what Windows does not take.
            write_text(output / name.replace(":", "_"), text)
    except OSError as error:
        raise SetupError(f"nothing can be written to {output}: {error.strerror}. Name another --output") from error
    say(visible(f"{output}: {quantity(len(files), 'file')}"))
    return OK


COMMAND = Command(
    about=(
        "Write a run in a form that other tools read. csv: cases.csv has a row for each case, scores.csv one for each "
        "score. trec: what is relevant (STORY.qrels) and what each target found (STORY.TARGET.run), so that other "
        "tools can score it; scores decrease strictly with the rank, and questions without an answer are left out."
    ),
    examples="""
examples:
  memstory export csv reports/latest
  memstory export trec reports/latest
  ir_measures reports/latest/trec/Q1.qrels reports/latest/trec/Q1.topics.run nDCG@10 R@10
""",
    exit_codes=("exit codes: 0 written, 2 there is no run, or for trec none that retrieved anything"),
    options=_options,
    run=_run,
)
