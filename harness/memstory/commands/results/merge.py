"""`memstory merge`: the shards of one run, put together to the report that the whole run would have given."""

from __future__ import annotations

import argparse
from heapq import merge
from pathlib import Path

from memstory.commands.command import OK, Command
from memstory.commands.output import say, say_aside, with_progress
from memstory.commands.results.results_files import has_recordings, shards_at, stored_at
from memstory.contract.errors import SetupError
from memstory.reporting.document import visible
from memstory.reporting.large_runs import Tally
from memstory.reporting.sections.columns import counts_in_words
from memstory.reporting.writing import begin_reports, write_reports_of
from memstory.results.folder.holding import Hold
from memstory.results.folder.recordings_file import RECORDINGS_NAME
from memstory.results.merging import merge_shards
from memstory.results.outcomes import CaseResult
from memstory.results.runs import place_of, quantity


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="the folder of a shard, or a results.json of any name; gzipped ones (.gz) are read too",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the merged report")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="these are not all shards: put them together to one that is merged with the others later",
    )


def _run(chosen: argparse.Namespace) -> int:
    output: Path = chosen.output
    sources = shards_at(chosen.results)
    if any(output.resolve() in (typed.resolve(), typed.resolve().parent) for typed in chosen.results):
        raise SetupError(f"{output} holds one of the shards: name another folder for --output")
    count = sum(sum(source.head.summary.values()) for source in sources)
    tally, signs = Tally(), with_progress(range(count), "case")

    def look(case: CaseResult) -> None:
        tally.add(case)
        next(signs, None)

    merged = merge_shards(sources, partial=chosen.partial, look=look)
    missing = [typed for typed in chosen.results if not has_recordings(typed)]
    with _begun(output):
        # A second time: what is no run is refused before anything is written.
        cases = merge(*map(stored_at, chosen.results), key=lambda one: place_of(one.case))
        seen = (case for case, _ in zip(cases, with_progress(range(count), "case"), strict=True))
        write_reports_of(output, merged.head, seen, tally, recordings=not missing)
    for line in [
        *(f"cut short: {line}" for line in merged.short),
        *(f"without recordings: {typed} has no {RECORDINGS_NAME}" for typed in missing),
    ]:
        say_aside(visible(line))
    said = f"{quantity(len(sources), 'shard')}, {counts_in_words(merged.head)}"
    part = merged.head.fingerprint.shard
    say(visible(f"{output}: {said}{f'; it is {part}' if part else ''}"))
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
        "reported and nothing is written. Shards are read one case at a time, so a million cases need no more memory "
        "than ten thousand; of more than 20,000 cases the report shows the totals, what went wrong and a sample, and "
        "pages in report-cases beside it have every case."
    ),
    examples="""
examples:
  memstory run stories --shard 1/2 --report reports/one        on one machine
  memstory run stories --shard 2/2 --report reports/two        on another
  memstory merge reports/one reports/two --output reports/whole
  memstory merge parts/1* --partial --output merged/1          a tree of merges: some shards now,
  memstory merge merged/* --output reports/whole               what came out with the others later
""",
    exit_codes=("exit codes: 0 merged, 2 these are not all the shards of one run, or one cannot be read"),
    options=_options,
    run=_run,
)
