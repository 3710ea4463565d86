"""The summary at the end of a run in a terminal: matrix, retrieval scores, and what the numbers do not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from tabulate import tabulate

from memstory.reporting import views
from memstory.reporting.escaping import shorten, visible
from memstory.reporting.measured import measured_text
from memstory.results.runs import Run
from memstory.results.secrecy.redaction import told

ALL_ROWS: Final = 40
"""Up to this many stories are all listed; of more, those that neither passed nor were measured everywhere."""

ALL_COLUMNS: Final = 12
"""Up to this many targets have a column each; of more, the outcomes of a story are counted."""

REASONS: Final = 8
"""Reasons for unsupported cases that are listed, most frequent first."""

TITLE_LIMIT: Final = 60

_GOOD: Final = frozenset({"passed", "measured"})


def terminal_summary(run: Run) -> str:
    """Return the summary as plain text without control characters."""
    return "\n\n".join(part for part in _parts(run) if part)


def _parts(run: Run) -> Iterator[str]:
    yield _matrix(run)
    yield _scores(run)
    yield measured_text(run)
    yield "\n".join(_flaky(run))
    yield "\n".join(_unsupported(run))
    models = [f"'{_plain(model)}'" for model in views.stand_ins(run)]
    if models:
        yield f"Not a language model: {', '.join(models)}. Tools and words were chosen by fixed rules."
    if any(run.redacted.values()):
        yield f"Redacted before it was written: {told(run.redacted)}."
    yield f"memstory: {views.headline(run)}"


def _matrix(run: Run) -> str:
    targets = views.targets_of(run)
    rows = views.matrix(run)
    if len(rows) > ALL_ROWS:
        rows = {name: outcomes for name, outcomes in rows.items() if not {*outcomes.values()} <= _GOOD}
    if not rows:
        return ""
    if len(targets) > ALL_COLUMNS:
        return f"{_counted(rows)}\n{len(targets)} targets are too many for a column each; report.md has them all."
    cells = [
        [_plain(story), _plain(title), *(outcomes.get(target, "-") for target in targets)]
        for (story, title), outcomes in rows.items()
    ]
    return tabulate(cells, headers=["story", "title", *map(_plain, targets)], disable_numparse=True)


def _counted(rows: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Return one line a story: on how many targets it ended in which way."""
    counts = [(name, Counter(outcomes.values())) for name, outcomes in rows.items()]
    seen = [outcome for outcome in views.SYMBOLS if any(count[outcome] for _, count in counts)]
    cells = [
        [_plain(story), _plain(title), *(str(count[outcome] or "-") for outcome in seen)]
        for (story, title), count in counts
    ]
    align = ["left"] * 2 + ["right"] * len(seen)
    return tabulate(cells, headers=["story", "title", *seen], disable_numparse=True, colalign=align)


def _scores(run: Run) -> str:
    rows = [row for case in run.cases if case.outcome != "measured" for row in views.score_rows(case)]
    if not rows:
        return ""
    columns = views.score_columns(rows)
    cells = [
        [
            _plain(f"{row.story} {row.level}".strip()),
            _plain(row.target),
            _plain(row.category or "total") + (" (apart)" if row.apart else ""),
            str(row.questions),
            *views.score_cells(row, list(columns)),
        ]
        for row in rows
    ]
    align = ["left"] * 3 + ["right"] * (len(columns) + 1)
    header = ["story", "target", "questions", "n", *columns.values()]
    return tabulate(cells, headers=header, disable_numparse=True, colalign=align)


def _flaky(run: Run) -> Iterator[str]:
    for case in run.cases:
        if (rate := case.rate) and rate.flaky:
            interval = f"95% interval {rate.low:.2f} to {rate.high:.2f}"
            yield f"flaky: {_plain(case.id)} passed {rate.passed} of {rate.trials} trials ({interval})"


def _unsupported(run: Run) -> Iterator[str]:
    counts: dict[str, int] = {}
    for case in views.with_outcome(run, "unsupported"):
        reason = case.reason or "no reason was given"
        counts[reason] = counts.get(reason, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    for reason, count in ranked[:REASONS]:
        yield f"{count} unsupported: {_plain(reason, 200)}"
    if rest := ranked[REASONS:]:
        yield f"{sum(count for _, count in rest)} unsupported for {len(rest)} other reasons, all in report.md"


def _plain(text: str, limit: int = TITLE_LIMIT) -> str:
    return shorten(visible(" ".join(text.split())), limit)
