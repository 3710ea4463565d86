"""`memstory show`: a recorded case, step by step."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, Command, add_json
from memstory.commands.output import say, say_json
from memstory.commands.results.run_folder import run_folder
from memstory.commands.results.timeline import SHORT, timeline
from memstory.errors import SetupError
from memstory.language.registry import nearest, unknown
from memstory.reporting import read_results
from memstory.reporting.writing import RESULTS_NAME
from memstory.target import Json

_FEW: Final = 20
"""So many names are read; of more, only a near one helps."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or results.json in it")
    parser.add_argument(
        "case", metavar="CASE", help="the id of a case, S5[topics], or of a story that ran on one target"
    )
    parser.add_argument("--trial", type=int, metavar="N", help="which trial, from 1 (default: the one that decided)")
    parser.add_argument("--full", action="store_true", help="do not shorten long values")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    document = read_results(_results_file(chosen.results))
    case = _case(document, chosen.case)
    if chosen.json:
        say_json(case)
        return OK
    trial = _trial(case, chosen.trial)
    for line in timeline(case, trial, limit=sys.maxsize if chosen.full else SHORT):
        say(line)
    return OK


def _results_file(typed: Path) -> Path:
    return typed if typed.is_file() else run_folder(typed) / RESULTS_NAME


def _case(document: Json, wanted: str) -> Json:
    by_id = {case["id"]: case for case in document["cases"]}
    if wanted in by_id:
        return by_id[wanted]
    of_story = [case for case in document["cases"] if case["story"] == wanted]
    if len(of_story) == 1:
        return of_story[0]
    if of_story:
        raise SetupError(
            f"the story {wanted} has several cases; name one: {', '.join(case['id'] for case in of_story)}"
        )
    if len(by_id) <= _FEW:
        raise SetupError(unknown(wanted, "case", by_id))
    near = nearest(wanted, [*by_id, *dict.fromkeys(case["story"] for case in document["cases"])])
    raise SetupError(f"unknown case '{wanted}'.{near} The run has {len(by_id)} cases; its report.md names them.")


def _trial(case: Json, wanted: int | None) -> int:
    if wanted is None:
        return int(case["shown"])
    count = len(case["trials"])
    if not 1 <= wanted <= count:
        raise SetupError(f"{case['id']} has no trial {wanted}; it ran {count} time{'s' if count != 1 else ''}")
    return wanted - 1


COMMAND = Command(
    about=(
        "Show what happened in a case of a run: each step with its arguments and result, the tool calls and "
        "answers, and how each expectation was judged. It reads results.json alone; no target is needed."
    ),
    examples="""
examples:
  memstory show reports/latest S5                      a story that ran on one target
  memstory show reports/latest 'S5[topics]' --full     one case, nothing shortened
  memstory show reports/latest S5 --trial 2            another trial
  memstory show reports/latest S5 --json | jq .steps   for programs
""",
    exit_codes=("exit codes: 0 fine, 2 there is no such run, case or trial"),
    options=_options,
    run=_run,
)
