"""The retrieval part of report.md: scores, the cost of perturbations, the data measured on, unusable labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memstory.reporting import views
from memstory.reporting.curves import curves
from memstory.reporting.escaping import inline, table
from memstory.reporting.views import ScoreRow
from memstory.results.runs import Run, counted


def retrieval(run: Run) -> str:
    """Return the tables of all cases that scored retrieval; empty if none did."""
    rows = [row for case in run.cases if case.outcome != "measured" for row in views.score_rows(case)]
    if not any(case.retrieval for case in run.cases):
        return ""
    rows = views.folded(rows)
    parts = [_table(rows) if rows else "", curves(run), "\n".join((*_measured_on(run), *_given(run))), *_unusable(run)]
    return "\n\n".join(part for part in parts if part)


def _table(rows: list[ScoreRow]) -> str:
    columns = views.score_columns(rows)
    has_levels = any(row.level for row in rows)
    header = ["Story", "Target", *(["Level"] if has_levels else []), "Questions", "n", *columns.values()]
    cells = [
        [
            inline(row.story),
            inline(row.target),
            *([inline(row.level)] if has_levels else []),
            _category(row),
            str(row.questions),
            *views.score_cells(row, list(columns)),
        ]
        for row in rows
    ]
    return table(header, cells, right=range(len(header) - len(columns) - 1, len(header)))


def _category(row: ScoreRow) -> str:
    if row.category is None:
        return "**total**"
    return f"{inline(row.category)} *(apart)*" if row.apart else inline(row.category)


def _measured_on(run: Run) -> Iterator[str]:
    """Yield a line for each set of data, not for each target that was measured on it."""
    said: dict[str, list[str]] = {}
    for case in run.cases:
        for record in case.retrieval:
            left_out = sum(not asked.judged for asked in record.questions)
            text = (
                f"{inline(record.name)}: {counted(record.documents, 'document')}, the first {record.k} hits of"
                f" {counted(len(record.questions), 'question')}"
                + (f" ({left_out} without a usable label are not judged)" if left_out else "")
                + f", data {inline(record.digest[:12])}"
            )
            said.setdefault(text, []).append(case.name)
    for text, stories in said.items():
        yield f"- {inline(', '.join(dict.fromkeys(stories)))} on {text}"


def _given(run: Run) -> Iterator[str]:
    """Yield for each dialogue which targets got its speakers, sessions and dates as fields, and which as text."""
    said: dict[tuple[str, bool], list[str]] = {}
    for case in run.cases:
        for record in case.retrieval:
            if record.as_turns is not None:
                said.setdefault((record.name, record.as_turns), []).append(case.target)
    for (name, as_turns), targets in said.items():
        form = "as fields" if as_turns else "in the text alone"
        yield f"- {inline(name)}: speaker, session and date {form} for {inline(', '.join(dict.fromkeys(targets)))}"


def _unusable(run: Run) -> Iterator[str]:
    listed: dict[str, Sequence[str]] = {}
    for case in run.cases:
        for record in case.retrieval:
            listed[record.name] = record.unusable
    for name, labels in listed.items():
        if labels:
            lines = "\n".join(f"- {inline(label)}" for label in labels)
            title = f"{inline(name)}: labels that could not be used and are left out ({len(labels)})"
            yield f"<details><summary>{title}</summary>\n\n{lines}\n\n</details>"
