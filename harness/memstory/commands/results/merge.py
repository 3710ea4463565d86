"""`memstory merge`: the shards of one run, put together to the report that the whole run would have given."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.commands.results.results_files import has_recordings, runs_at
from memstory.contract.errors import SetupError
from memstory.reporting.document import visible
from memstory.reporting.sections.columns import headline
from memstory.reporting.writing import begin_reports, write_reports
from memstory.results.folder.holding import Hold
from memstory.results.folder.recordings_file import RECORDINGS_NAME
from memstory.results.merging import incomplete_shards, merge_shards
from memstory.results.runs import quantity


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULTS", help="the folder of a shard, or a results.json of any name"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the merged report")


def _run(chosen: argparse.Namespace) -> int:
    output: Path = chosen.output
    runs = runs_at(chosen.results, with_steps=True)
    if any(output.resolve() in (typed.resolve(), typed.resolve().parent) for typed in chosen.results):
        raise SetupError(f"{output} holds one of the shards: name another folder for --output")
    run = merge_shards(runs)
    missing = [typed for typed in chosen.results if not has_recordings(typed)]
    with _begun(output):
        write_reports(output, run, recordings=not missing)
    for line in [
        *(f"cut short: {line}" for line in incomplete_shards(runs)),
        *(f"without recordings: {typed} has no {RECORDINGS_NAME}" for typed in missing),
    ]:
        sys.stderr.write(visible(f"{line}\n"))
    say(visible(f"{output}: {quantity(len(runs), 'shard')}, {headline(run)}"))
    return OK


def _begun(output: Path) -> Hold:
    try:
        return begin_reports(output)
    except OSError as error:
        raise SetupError(f"nothing can be written to {output}: {error.strerror}. Name another --output") from error


COMMAND = Command(
    about=(
        "Put the shards of one run together: results.json, report.md and recordings.jsonl are what a single run "
        "would have written, apart from times. Each shard must be given exactly once, and all must come from one "
        "run: the same selection of stories, the same options and versions. If anything differs or is missing, it is "
        "reported and nothing is written."
    ),
    examples="""
examples:
  memstory run stories --shard 1/2 --report reports/one        on one machine
  memstory run stories --shard 2/2 --report reports/two        on another
  memstory merge reports/one reports/two --output reports/whole
""",
    exit_codes=("exit codes: 0 merged, 2 these are not all the shards of one run, or one cannot be read"),
    options=_options,
    run=_run,
)
