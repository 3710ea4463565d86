"""A run as two CSV files, for spreadsheets and data frames: a row for each case, and one for each score."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from memstory.results.outcomes import CaseResult
from memstory.results.runs import Run
from memstory.tasks.perturbation import level_name

_CASE: Final = (
    "id", "story", "row", "slug", "title", "target", "outcome", "harm", "reason", "seconds", "trials", "trials_passed",
    "tags", "covers", "needs", "where", "digest",
)  # fmt: skip
_SCORE: Final = ("id", "target", "metric", "category", "level", "value", "low", "high", "questions")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_files(run: Run) -> Mapping[str, str]:
    """Return the files by name. A text that a spreadsheet would take for a formula has an apostrophe before it."""
    files = {"cases.csv": _csv_text(_CASE, map(_case, run.cases))}
    scores = [row for case in run.cases for row in _scores(case)]
    return {**files, "scores.csv": _csv_text(_SCORE, scores)} if scores else files


def _case(case: CaseResult) -> Sequence[object]:
    passed = sum(trial.outcome == "passed" for trial in case.trials)
    lists = (" ".join(words) for words in (case.tags, case.covers, case.needs))
    return (
        case.id, case.story, case.row, case.slug, case.title, case.target, case.outcome, case.harm, case.reason,
        round(case.seconds, 6), len(case.trials), passed, *lists, case.where, case.digest,
    )  # fmt: skip


def _scores(case: CaseResult) -> Iterable[Sequence[object]]:
    for one in case.scores:
        level, value = level_name(one.level), round(one.value, 6)
        yield case.id, case.target, one.metric, one.category, level, value, one.low, one.high, one.questions


def _csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Return a value as its cell: what a memory answered is data, and a spreadsheet runs what begins like a formula.

    >>> _cell("=1+1"), _cell("tea"), _cell(-1.5), _cell(None)
    ("'=1+1", 'tea', -1.5, None)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
