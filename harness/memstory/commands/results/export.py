"""`memstory export`: the retrieval of a run in files that other tools read."""

from __future__ import annotations

import argparse
from pathlib import Path

from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.commands.results.results_files import run_at
from memstory.contract.errors import SetupError
from memstory.reporting.document import visible
from memstory.reporting.trec import trec_files
from memstory.results.baseline import with_ids
from memstory.results.folder.whole_files import write_text
from memstory.results.runs import counted


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("form", choices=["trec"], help="trec: qrels and runs for trec_eval, ir_measures and ranx")
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or a results.json")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of the files (default: trec in that folder)")


def _run(chosen: argparse.Namespace) -> int:
    files = trec_files(with_ids(run_at(chosen.results)))
    if not files:
        raise SetupError(f"{chosen.results} holds no retrieval: run stories that have one")
    folder = chosen.results if chosen.results.is_dir() else chosen.results.parent
    output: Path = chosen.output or folder / "trec"
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A name may hold what Windows does not take.
            write_text(output / name.replace(":", "_"), text)
    except OSError as error:
        raise SetupError(f"nothing can be written to {output}: {error.strerror}. Name another --output") from error
    say(visible(f"{output}: {counted(len(files), 'file')}"))
    return OK


COMMAND = Command(
    about=(
        "Write what is relevant (STORY.qrels) and what each target found (STORY.TARGET.run) in TREC format, so that "
        "other tools can score it. Scores decrease strictly with the rank. Questions without an answer are left out."
    ),
    examples="""
examples:
  memstory export trec reports/latest
  ir_measures reports/latest/trec/Q1.qrels reports/latest/trec/Q1.topics.run nDCG@10 R@10
""",
    exit_codes=("exit codes: 0 written, 2 there is no run, or none that retrieved anything"),
    options=_options,
    run=_run,
)
