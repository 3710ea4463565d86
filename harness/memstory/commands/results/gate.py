"""`memstory gate`: whether a run is as good as its baseline."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from memstory.commands.command import OK, Command, add_json, number_above, whole_number
from memstory.commands.output import say, say_json
from memstory.commands.results.results_files import run_at, runs_at
from memstory.contract.errors import SetupError
from memstory.exploring.record import RECORD_NAME, new_findings, read_record, record_text
from memstory.reporting.document import visible
from memstory.reporting.gate import Gate, gate
from memstory.reporting.sections.columns import shard_name
from memstory.results.folder.results_file import RESULTS_NAME, write_results
from memstory.results.folder.whole_files import write_text
from memstory.results.likeness import run_differences
from memstory.results.merging import varying_cases, worst_of
from memstory.results.runs import NamedRun, Run, quantity, some

_SEVERAL = 3
_VERDICTS = ("passed", "regression", "could not be measured")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="the folder of a run, or results.json in it; with --update also three runs or more of the same memory",
    )
    parser.add_argument(
        "--baseline", type=Path, required=True, metavar="FILE", help="the results to compare the run with"
    )
    parser.add_argument("--least-cases", type=whole_number, default=1, metavar="N", help="fewer cases that both runs "
                        "were judged on cannot decide (default: 1)")  # fmt: skip
    parser.add_argument("--slower", type=number_above(1), metavar="FACTOR", help="a p95 of more than so many times "
                        "that of the baseline, such as 2, is a regression too: for runs of one machine")  # fmt: skip
    parser.add_argument("--update", action="store_true", help="make RESULTS the baseline, and say what "
                        "changed by it")  # fmt: skip
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if all(_is_exploration(path) for path in chosen.results):
        return _gate_exploration(chosen)
    runs = runs_at(chosen.results)
    current = _joint(runs) if chosen.update else _one(runs)
    if not chosen.update and not chosen.baseline.exists():
        raise SetupError(f"there is no baseline {chosen.baseline}: 'memstory gate RESULTS --baseline FILE --update' "
                         "makes one of a run that you accept")  # fmt: skip
    lines = _repetition_lines(current, runs)
    if not chosen.baseline.exists():
        _write(chosen.baseline, current)
        say(visible("\n".join([*lines, f"{chosen.baseline}: written, {quantity(len(current.cases), 'case')}"])))
        return OK
    try:
        baseline = NamedRun(name="the baseline", run=run_at(chosen.baseline))
    except SetupError as error:
        raise SetupError(f"{error}. Where the file can go, delete it: '--update' then writes a new one") from None
    now = NamedRun(name="this run", run=current)
    found = gate(baseline, now, least_cases=chosen.least_cases, slower=chosen.slower)
    if chosen.update:
        _check_varying(baseline.run, runs)
        _write(chosen.baseline, current)
        lines = [*_lines(found), *lines, f"{chosen.baseline}: rewritten, {quantity(len(current.cases), 'case')}"]
    else:
        lines = [
            *_lines(found),
            f"gate: {_VERDICTS[found.code]} ({quantity(found.judged, 'case')} judged in both runs)",
        ]
    _tell(found, lines, as_json=chosen.json)
    return OK if chosen.update else found.code


def _is_exploration(path: Path) -> bool:
    return path.name == RECORD_NAME or ((path / RECORD_NAME).is_file() and not (path / RESULTS_NAME).is_file())


def _gate_exploration(chosen: argparse.Namespace) -> int:
    """Compare an exploration with an older one: each new finding is a regression."""
    (path, *more) = chosen.results
    if more:
        raise SetupError(f"{len(chosen.results)} explorations are named, and one is compared with the baseline")
    after = read_record(path)
    if chosen.update:
        write_text(chosen.baseline, record_text(after))
        say(f"{chosen.baseline}: written, {quantity(len(after.explorations), 'exploration')}")
        return OK
    regressions = new_findings(read_record(chosen.baseline), after)
    found = Gate(judged=len(after.explorations), regressions=[*regressions])
    lines = [*_lines(found), f"gate: {_VERDICTS[found.code]} ({quantity(found.judged, 'exploration')} compared)"]
    _tell(found, lines, as_json=chosen.json)
    return found.code


def _tell(found: Gate, lines: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        say_json({**asdict(found), "code": found.code})
    else:
        say(visible("\n".join(lines)))


def _one(runs: Sequence[NamedRun]) -> Run:
    if len(runs) > 1:
        raise SetupError(f"{len(runs)} runs are named, and one is compared with the baseline: several are for --update")
    return runs[0].run


def _joint(runs: Sequence[NamedRun]) -> Run:
    """Return the run that becomes the baseline."""
    for named in runs:
        _check(named)
    if len(runs) == 1:
        return runs[0].run
    if len(runs) < _SEVERAL:
        raise SetupError("two runs do not tell whether a memory is steady: name one run, or three or more")
    cases = [{case.id for case in named.run.cases} for named in runs]
    uneven = sorted({name for names in cases for name in names if not all(name in other for other in cases)})
    unlike = run_differences(runs) or ([f"{some(uneven)}: not in all of them"] if uneven else [])
    if unlike:
        raise SetupError("\n  ".join(["these are not runs of the same cases:", *unlike]))
    return worst_of([named.run for named in runs])


def _check(named: NamedRun) -> None:
    if part := shard_name(named.run):
        raise SetupError(f"{named.name} is only {part} and cannot become the baseline: 'memstory merge' makes a whole "
                         "run")  # fmt: skip
    if not named.run.complete:
        raise SetupError(f"{named.name} was cut short and cannot become the baseline: run the stories to their end")


def _check_varying(baseline: Run, runs: Sequence[NamedRun]) -> None:
    """Refuse one run of a memory that is known to vary: compared with it, 5 of 20 later runs were false alarms."""
    targets = {case.target for case in runs[0].run.cases}
    varying = [name for name, is_steady in baseline.steady.items() if not is_steady and name in targets]
    if varying and len(runs) == 1:
        raise SetupError(f"{some(varying)} did not find the same in the runs of the baseline, and one run would accuse "
                         f"it of chance: name {_SEVERAL} runs or more after --update")  # fmt: skip


def _repetition_lines(current: Run, runs: Sequence[NamedRun]) -> list[str]:
    """Return a line for each target of a baseline of several runs."""
    varying = varying_cases([named.run for named in runs])
    return [
        f"{target}: "
        + (f"the same in {len(runs)} runs, so that any later loss is a regression" if is_steady
           else f"not the same in {len(runs)} runs: {some(varying[target])}")
        for target, is_steady in current.steady.items()
    ]  # fmt: skip


def _write(path: Path, current: Run) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_results(path, current)


def _lines(found: Gate) -> list[str]:
    labelled = {
        "regression": found.regressions,
        "could not be measured": found.unmeasured,
        "better": found.improvements,
        "note": found.notes,
    }
    return [f"{label}: {line}" for label, lines in labelled.items() for line in lines] or ["nothing changed"]


COMMAND = Command(
    about=(
        "Compare a run with a baseline of the same targets. A case that passed and no longer does is a regression. "
        "So is a retrieval score that is significantly lower: the 95% interval of the difference over the same "
        "questions is below 0, or a sign test over the lost and won questions says so. Errors, missing "
        "cases, other stories, other data and too few cases cannot be measured. --update makes the run the new "
        "baseline: FILE is its results.json, gzipped if the name ends in .gz. Of three runs or more it tells which "
        "targets find the same each time: of these any later loss is a regression. Of two explorations it compares "
        "the findings: a new one is a regression."
    ),
    examples="""
examples:
  memstory gate reports/latest --baseline reports/baseline/mine.json.gz
  memstory gate reports/latest --baseline reports/baseline/mine.json.gz --least-cases 20
  memstory gate reports/run-1 reports/run-2 reports/run-3 --baseline reports/baseline/mine.json.gz --update
  memstory gate reports/latest --baseline reports/baseline/mine.json.gz --update
  memstory gate reports/explore --baseline reports/baseline/explore.json
""",
    exit_codes=("exit codes: 0 as good as the baseline, or --update wrote it, 1 regression, 2 could not be measured"),
    options=_options,
    run=_run,
)
