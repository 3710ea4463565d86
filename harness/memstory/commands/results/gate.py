"""`memstory gate`: whether a run is as good as its baseline."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from memstory.commands.command import OK, Command, add_json
from memstory.commands.output import counted, say, say_json
from memstory.commands.results.results_files import run_at
from memstory.errors import SetupError
from memstory.reporting.comparing.regression import Gate, gate
from memstory.reporting.escaping import visible
from memstory.reporting.views import shard_name
from memstory.results.baseline import as_baseline
from memstory.results.folder.results_file import write_results
from memstory.results.runs import NamedRun, Run

_VERDICTS = ("passed", "regression", "could not be measured")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or results.json in it")
    parser.add_argument(
        "--baseline", type=Path, required=True, metavar="FILE", help="the results that the run is held against"
    )
    parser.add_argument("--least-cases", type=_count, default=1, metavar="N", help="fewer cases that both runs were "
                        "judged on cannot decide (default: 1)")  # fmt: skip
    parser.add_argument("--update", action="store_true", help="make RESULTS the baseline, and say what changed by it")
    add_json(parser)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("allowed is 1 or more")
    return number


def _run(chosen: argparse.Namespace) -> int:
    current = run_at(chosen.results)
    if chosen.update and not chosen.baseline.exists():
        _write(chosen.baseline, current)
        say(f"{chosen.baseline}: written, {counted(len(current.cases), 'case')}")
        return OK
    baseline = NamedRun(name="the baseline", run=run_at(chosen.baseline))
    found = gate(baseline, NamedRun(name="this run", run=current), least_cases=chosen.least_cases)
    if chosen.json:
        say_json({**asdict(found), "code": found.code})
    else:
        say(visible("\n".join(_lines(found))))
    if not chosen.update:
        if not chosen.json:
            say(f"gate: {_VERDICTS[found.code]} ({counted(found.judged, 'case')} judged in both runs)")
        return found.code
    _write(chosen.baseline, current)
    if not chosen.json:
        say(f"{chosen.baseline}: rewritten, {counted(len(current.cases), 'case')}")
    return OK


def _write(path: Path, current: Run) -> None:
    if part := shard_name(current):
        raise SetupError(f"the run is only {part} and cannot become the baseline: 'memstory merge' makes a whole run")
    if not current.complete:
        raise SetupError("the run was cut short and cannot become the baseline: run the stories to their end")

    path.parent.mkdir(parents=True, exist_ok=True)
    write_results(path, as_baseline(current))


def _lines(found: Gate) -> list[str]:
    return [
        *_listed("regression", found.regressions),
        *_listed("could not be measured", found.unmeasured),
        *_listed("better", found.improvements),
        *_listed("note", found.notes),
    ] or ["nothing changed"]


def _listed(word: str, lines: Sequence[str]) -> list[str]:
    return [f"{word}: {line}" for line in lines]


COMMAND = Command(
    about=(
        "Hold a run against a baseline of the same targets. A case that passed and no longer does is a "
        "regression, and so is a retrieval score that is lower by more than chance: the 95% interval of the difference "
        "over the same questions lies below 0. Errors, missing cases, other stories, other data and too few cases "
        "cannot be measured. --update makes the run the new baseline: without steps, times and ids of found "
        "documents, and packed if its name ends in .gz, so that it can be kept in git."
    ),
    examples="""
examples:
  memstory gate reports/latest --baseline reports/baseline/mine.json.gz
  memstory gate reports/latest --baseline reports/baseline/mine.json.gz --least-cases 20
  memstory gate reports/latest --baseline reports/baseline/mine.json.gz --update
""",
    exit_codes=("exit codes: 0 as good as the baseline, or --update wrote it, 1 regression, 2 could not be measured"),
    options=_options,
    run=_run,
)
