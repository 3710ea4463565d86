"""`memstory badge`: what a run says of leaks and losses, in the JSON from which shields.io draws a badge."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.commands.results.results_files import run_at
from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.reporting.sections.columns import shard_name
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import CaseResult, Harm
from memstory.results.runs import Run, quantity, some

_GRAVE: Final[dict[Harm, str]] = {"leak": "leaks", "loss": "losses"}
_BROKEN: Final = frozenset({"error", "invalid"})


def badge(run: Run, target: str) -> Tree:
    """Return the badge of one target of a run, in shields.io's form for an endpoint.

    It is red where anything leaked or was lost, and green only where cases of both kinds were judged, nothing failed,
    nothing broke and the run is whole. What was not judged is said, never taken for 0.
    """
    cases = [case for case in run.cases if case.target == target]
    judged = [case for case in cases if case.outcome == "failed" or (case.outcome == "passed" and _was_checked(case))]
    failed = Counter(case.harm for case in judged if case.outcome == "failed")
    of_kind = Counter(case.harm for case in judged)
    said = [f"{word} {failed[harm]}" if of_kind[harm] else f"{word} not tested" for harm, word in _GRAVE.items()]
    others = failed.total() - sum(failed[harm] for harm in _GRAVE)
    broken = sum(case.outcome in _BROKEN for case in cases)
    said += [f"{others} failed otherwise"] if others else []
    said += [quantity(broken, "error")] if broken else []
    partly = shard_name(run) or ("" if run.complete else "cut short")
    said += [partly] if partly else []
    if any(failed[harm] for harm in _GRAVE):
        colour = "red"
    elif not judged:
        said, colour = ["nothing judged"], "lightgrey"
    elif others:
        colour = "orange"
    else:
        colour = "yellow" if broken or partly or not all(of_kind[harm] for harm in _GRAVE) else "brightgreen"
    return {"schemaVersion": 1, "label": "memory", "message": ", ".join(said), "color": colour}


def _was_checked(case: CaseResult) -> bool:
    return any(trial.verdicts for trial in case.trials)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or a results.json")
    parser.add_argument("--target", metavar="NAME", help="which target of the run; not needed where it has only one")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it there instead of printing it")


def _run(chosen: argparse.Namespace) -> int:
    run = run_at(chosen.results)
    text = json.dumps(badge(run, _target(run, chosen.target, chosen.results)))
    if chosen.output is None:
        say(text)
    else:
        chosen.output.parent.mkdir(parents=True, exist_ok=True)
        write_text(chosen.output, f"{text}\n")
    return OK


def _target(run: Run, typed: str | None, results: Path) -> str:
    names = sorted({case.target for case in run.cases})
    if typed is None and len(names) == 1:
        return names[0]
    if typed is None or typed not in names:
        raise SetupError(
            f"{results} has no target '{typed}': it has {some(names) or 'none'}"
            if typed
            else f"{results} has {quantity(len(names), 'target')}, and a badge speaks of one: name it by --target "
            f"({some(names) or 'there is none'})"
        )
    return typed


COMMAND = Command(
    about=(
        "Print the JSON of a badge such as 'memory: leaks 0, losses 0', for the endpoint badge of shields.io. A leak "
        "or a loss is a failed case whose story has that harm. Red: there is one. Orange: only others failed. Yellow: "
        "something broke, the run is not whole, or no case of one kind was judged. Grey: nothing was judged. Green: "
        "none of these."
    ),
    examples="""
examples:
  memstory badge reports/latest
  memstory badge reports/latest --target fts5 --output badges/memory.json
""",
    exit_codes="exit codes: 0 the badge was made, whatever its colour, 2 there is no such run or target",
    options=_options,
    run=_run,
)
