"""The first lines of a report: what was run, what failed by harm and cause, totals by target, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from memstory.reporting import views
from memstory.reporting.comparing.columns import Column
from memstory.reporting.escaping import inline, table
from memstory.reporting.overview.causes import Cause
from memstory.reporting.overview.links import Links
from memstory.reporting.overview.target_totals import target_totals
from memstory.results.outcomes import OUTCOMES, WORST_FIRST, Outcome
from memstory.results.runs import Run, counted

_WRONG: Final[Mapping[Outcome, str]] = {
    "failed": "failed",
    "error": "ended in an error before a judgement",
    "invalid": "not run because the story itself is wrong",
}
_CASES: Final = 6


def conclusion(run: Run) -> str:
    """Return what the run came to in a few sentences of markdown."""
    counts, cases = run.summary, len(run.cases)
    ran = counts["passed"] + counts["failed"]
    wrong = [f"{counts[name]} {words}" for name in WORST_FIRST if (words := _WRONG.get(name)) and counts[name]]
    if not ran:
        first = f"**Nothing was judged**: none of {counted(cases, 'case')} ran to its end."
    elif wrong:
        first = f"**Not everything passed**: {', '.join(wrong)}."
    else:
        first = f"**Every case that ran passed** ({ran} of {cases})."
    if counts["measured"]:
        first += f" {counts['measured']} measured: they only take scores and cannot fail."
    if counts["unsupported"]:
        first += f" {counts['unsupported']} unsupported: the target lacks something, and they prove nothing."
    if part := views.shard_name(run):
        first += f" **This is only {part}**: 'memstory merge' puts all of them together."
    if not run.complete:
        ended = sum(not case.is_lost for case in run.cases)
        those = f"{ended} of {counted(cases, 'case')}"
        first += f" **The run was cut short**: {those} had ended by then, the others have no result."
    return first


def harms_in_words(found: Sequence[Cause]) -> str:
    """Return the failures by harm, in the order of their causes, the worst first; empty if there is none.

    >>> harms_in_words([])
    ''
    """
    counts: Counter[str] = Counter()
    for cause in found:
        counts[cause.harm] += len(cause.cases)
    said = ", ".join(f"{count} {harm}" for harm, count in counts.items())
    return f"By harm: {said} ({counted(len(found), 'cause')})." if found else ""


def totals_table(columns: Sequence[Column], changes: Mapping[str, str]) -> str:
    """Return the totals by target as markdown, without columns that are empty; `changes` in words, if any."""
    totals = target_totals(columns)
    shown = [name for name in OUTCOMES if name in {"passed", "failed"} or any(one.counts[name] for one in totals)]
    has_recall = any(one.recall is not None for one in totals)
    header = ["Target", *shown, *(["R@5"] if has_recall else []), *(["since last run"] if changes else [])]
    rows = []
    for one in totals:
        row = [inline(one.name), *(str(one.counts[name] or "") for name in shown)]
        if has_recall:
            row.append(f"{one.recall:.2f}" if one.recall is not None else "")
        if changes:
            row.append(changes[one.name])
        rows.append(row)
    return table(header, rows, right=range(1, len(header))) if rows else ""


def causes_table(found: Sequence[Cause], links: Links) -> str:
    """Return the failures by cause as markdown, the worst harm first."""
    rows = [
        [
            cause.harm,
            inline(cause.column),
            inline(cause.reason, 160),
            str(len(cause.cases)),
            ", ".join(links.to_case(case, case.name) for case in cause.cases[:_CASES])
            + (f" and {len(cause.cases) - _CASES} more" if len(cause.cases) > _CASES else ""),
        ]
        for cause in found
    ]
    return table(["Harm", "Target", "What happened", "n", "Cases"], rows, right=[3]) if rows else ""
