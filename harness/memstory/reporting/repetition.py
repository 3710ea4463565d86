"""The part of report.md on cases that ran several times: how often they passed, and how reliable that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.results.outcomes import CaseResult, Rate
from memstory.results.runs import Run

_EXPLAINED: Final = """\
*Flaky* is a case of which some trials passed and some did not, whatever the story made of it; nothing is tried again
silently. The interval is Wilson's, of 95%. pass@2 is the chance that one of two trials passes, pass^2 that both do,
and pass^n that all of as many trials as were run do."""


def repetition(run: Run) -> str:
    """Return a table of the cases with several trials, the flaky ones first; empty if there is none."""
    rated = [(case, case.rate) for case in run.cases if case.rate is not None]
    if not rated:
        return ""
    rows = [_row(case, rate) for case, rate in sorted(rated, key=lambda one: not one[1].flaky)]
    header = ["Case", "Outcome", "Passed", "Rate", "95% interval", "pass@2", "pass^2", "pass^n"]
    return f"{table(header, rows, right=range(2, len(header)))}\n\n{_EXPLAINED}"


def _row(case: CaseResult, rate: Rate) -> list[str]:
    return [
        inline(case.id),
        f"{views.SYMBOLS[case.outcome]} {case.outcome}" + (", **flaky**" if rate.flaky else ""),
        f"{rate.passed} of {rate.trials}",
        f"{rate.passed / rate.trials:.2f}",
        f"{rate.low:.2f} to {rate.high:.2f}",
        _of_two(rate.pass_at),
        _of_two(rate.pass_hat),
        f"{rate.pass_hat[-1]:.2f}",
    ]


def _of_two(values: Sequence[float]) -> str:
    return f"{values[1]:.2f}" if len(values) > 1 else "-"
