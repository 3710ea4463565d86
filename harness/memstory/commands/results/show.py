"""`memstory show`: a recorded case, step by step."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, Command, add_json
from memstory.commands.output import in_colour, say, say_json
from memstory.commands.results.results_files import has_recordings, recorded_run_at, run_at
from memstory.commands.results.timeline import SHORT, timeline
from memstory.contract.codec import encode
from memstory.contract.errors import SetupError
from memstory.language.registry import suggestion, unknown_name_message
from memstory.results.folder.recordings_file import RECORDINGS_NAME
from memstory.results.outcomes import CaseResult
from memstory.results.redaction import redaction_notice
from memstory.results.runs import Run, quantity

_COLOURS: Final = {
    "red": re.compile(r" {5}FAILED |ended(?: in step [\d.]+)?: |\S+  (?:failed|error|invalid) in "),
    "green": re.compile(r" {5}ok |\S+  passed in "),
}
_FEW: Final = 20
"""So many names are read; of more, only a near one helps."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or results.json in it")
    parser.add_argument(
        "case", metavar="CASE", help="the id of a case, S5[topics], or the id or slug of a story that ran on one target"
    )
    parser.add_argument("--trial", type=int, metavar="N", help="which trial, from 1 (default: the one that decided)")
    parser.add_argument("--full", action="store_true", help="do not shorten long values")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    is_recorded = has_recordings(chosen.results)
    case = _case(recorded_run_at(chosen.results) if is_recorded else run_at(chosen.results), chosen.case)
    trial = _trial(case, chosen.trial)
    for line in _incomplete(case, is_recorded=is_recorded):
        sys.stderr.write(f"memstory show: {line}\n")
    if chosen.json:
        say_json(encode(case))
        return OK
    for line in timeline(case, trial, limit=sys.maxsize if chosen.full else SHORT):
        say(in_colour(line, _colour(line)))
    return OK


def _colour(line: str) -> str:
    """Return how a line of the timeline is shown; what a memory said never begins a line."""
    return next((colour for colour, begin in _COLOURS.items() if begin.match(line)), "")


def _incomplete(case: CaseResult, *, is_recorded: bool) -> Iterator[str]:
    """Yield what of the case is not there to be shown."""
    if not is_recorded and case.trials:
        yield f"there is no {RECORDINGS_NAME} beside these results, so the steps are not shown"
    if any(case.redacted.values()):
        yield f"{redaction_notice(case.redacted)} were redacted before anything was written"


def _case(run: Run, wanted: str) -> CaseResult:
    by_id = {case.id: case for case in run.cases}
    if wanted in by_id:
        return by_id[wanted]
    of_story = [case for case in run.cases if wanted in {case.story, case.slug}]
    if len(of_story) == 1:
        return of_story[0]
    if of_story:
        raise SetupError(f"the story {wanted} has several cases; name one: {', '.join(case.id for case in of_story)}")
    if len(by_id) <= _FEW:
        raise SetupError(unknown_name_message(wanted, "case", by_id))
    near = suggestion(wanted, [*by_id, *dict.fromkeys(case.story for case in run.cases)])
    raise SetupError(f"unknown case '{wanted}'.{near} The run has {len(by_id)} cases; its report.md names them.")


def _trial(case: CaseResult, wanted: int | None) -> int:
    if wanted is None:
        return case.shown
    count = len(case.trials)
    if not 1 <= wanted <= count:
        raise SetupError(f"{case.id} has no trial {wanted}; it ran {quantity(count, 'time')}")
    return wanted - 1


COMMAND = Command(
    about=(
        "Show what happened in a case of a run: each step with its arguments and result, the tool calls and "
        "answers, and how each expectation was judged. It reads results.json and recordings.jsonl; no target is needed."
    ),
    examples="""
examples:
  memstory show reports/latest S5                      a story that ran on one target
  memstory show reports/latest 'S5[topics]' --full     one case, nothing shortened
  memstory show reports/latest S5 --trial 2            another trial
  memstory show reports/latest S5 --json | jq .trials[0].recording.steps
""",
    exit_codes=("exit codes: 0 fine, 2 there is no such run, case or trial"),
    options=_options,
    run=_run,
)
