"""Failures by harm and cause: one fault of a memory often fails many stories, and readers should see it once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.results.outcomes import WRONG, CaseResult, Outcome

_PLACE: Final = re.compile(r"^\S+:\d+:\d+:? (?:step [\d.]+(?:, pass \d+)? \([a-z_]+\): )?")
_VARIES: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\d+(?:\.\d+)?|\([^()]*\)")
_SAME_WORDS: Final = 6
"""So many words of a reason decide what is the same cause; what follows quotes what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Cases of one column that failed alike; `reason` is that of the first.

    `harm` is `wrong` where the story names none, and `error` where a case did not show its harm.
    A story that could not be read is listed once, for the first column.
    """

    harm: str
    column: str
    outcome: Outcome
    reason: str
    cases: Sequence[CaseResult]


def causes(columns: Sequence[Column]) -> list[Cause]:
    """Return the failures and errors by cause, the worst harm first, then the largest."""
    groups: dict[tuple[str, str, Outcome, str], list[CaseResult]] = {}
    seen: set[str] = set()
    for column in columns:
        for case in column.cases.values():
            if case.outcome not in WRONG or (not case.target and case.id in seen):
                continue
            seen.add(case.id)
            harm = harm_of(case) if case.outcome == "failed" else "error"
            groups.setdefault((harm, column.title, case.outcome, _kind(case)), []).append(case)
    found = [
        Cause(harm=harm, column=column, outcome=outcome, reason=short_reason(group[0]), cases=tuple(group))
        for (harm, column, outcome, _), group in groups.items()
    ]
    return sorted(found, key=lambda one: (one.cases[0].severity, -len(one.cases), one.column))


def harm_of(case: CaseResult) -> str:
    """Return what a failure of `case` does to a user."""
    return case.harm or "wrong"


def short_reason(case: CaseResult) -> str:
    """Return why `case` did not pass, without its place in the file and without the whole list of hits."""
    return _PLACE.sub("", case.reason or "no reason was given").partition("; the hits are: ")[0]


def _kind(case: CaseResult) -> str:
    """Return what is the same in the reasons of one cause: the step, and how the reason begins, values left out."""
    verdict = next((one for trial in case.trials for one in trial.verdicts if not one.passed), None)
    times = {tuple(one.path): one.op for trial in case.trials for one in trial.times}
    operation = times.get(tuple(verdict.step), "") if verdict else ""
    words = _VARIES.sub("…", short_reason(case)).split()
    return " ".join([operation, *words[:_SAME_WORDS]])
