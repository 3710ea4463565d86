"""The part of report.md on cases that ran several times: how often they passed, and how far that may be trusted."""

from __future__ import annotations

from typing import Final

from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.target import Json

_EXPLAINED: Final = """\
*Flaky* is a case of which some trials passed and some did not, whatever the story made of it; nothing is tried again in
silence. The interval is Wilson's, of 95%. pass@2 is the chance that one of two trials passes, pass^2 that both do, and
pass^n that all of as many trials as were run do."""


def repetition(document: Json) -> str:
    """Return a table of the cases with several trials, the flaky ones first; empty if there is none."""
    cases = sorted(views.repeated(document), key=lambda case: not views.is_flaky(case))
    if not cases:
        return ""
    header = ["Case", "Outcome", "Passed", "Rate", "95% interval", "pass@2", "pass^2", "pass^n"]
    return f"{table(header, map(_row, cases), right=range(2, len(header)))}\n\n{_EXPLAINED}"


def _row(case: Json) -> list[str]:
    rate = case["rate"]
    return [
        inline(case["id"]),
        f"{views.SYMBOLS[case['outcome']]} {case['outcome']}" + (", **flaky**" if rate["flaky"] else ""),
        f"{rate['passed']} of {rate['trials']}",
        f"{rate['passed'] / rate['trials']:.2f}",
        f"{rate['low']:.2f} to {rate['high']:.2f}",
        _of_two(rate["pass_at"]),
        _of_two(rate["pass_hat"]),
        f"{rate['pass_hat'][-1]:.2f}",
    ]


def _of_two(values: list[float]) -> str:
    return f"{values[1]:.2f}" if len(values) > 1 else "-"
