"""A comparison laid out as titled tables, once; then written as markdown or for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

from tabulate import tabulate

from memstory.reporting import views
from memstory.reporting.comparing.comparison import Comparison, ScoreDifference
from memstory.reporting.comparing.paired import Difference
from memstory.reporting.escaping import inline, shorten, visible
from memstory.reporting.escaping import table as markdown_table

_WIDTH = 60
_NOTE_WIDTH = 100
_STORIES_SHOWN = 8

INTERVALS = (
    "Mean difference over the questions that both were asked, with its 95% interval by paired bootstrap. "
    "▲ and ▼ mark intervals that do not hold 0: the others may be chance."
)
TIMES = (
    "Milliseconds of one call, embedding included, over the stories that could be judged: where targets could do "
    "different stories, the numbers are not of the same work."
)
SHARES = "Passed of judged. A story counts under each of its tags and under each operation that it uses."


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table of plain text; a section without rows is left out. Columns from `right` on hold numbers."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: int | None = None
    note: str = ""


def as_markdown(comparison: Comparison) -> str:
    """Return the comparison as a page; whatever a run said is escaped."""
    parts = ["# Comparison"]
    for section in _sections(comparison):
        right = range(len(section.header) if section.right is None else section.right, len(section.header))
        cells = [[inline(cell) for cell in row] for row in section.rows]
        text = markdown_table([inline(title) for title in section.header], cells, right=right)
        parts += [f"## {section.title}", *([section.note] if section.note else []), text]
    return "\n\n".join(parts) + "\n"


def as_text(comparison: Comparison) -> str:
    """Return the comparison for a terminal, without control characters."""
    parts = []
    for section in _sections(comparison):
        cells = [[shorten(visible(" ".join(cell.split())), _WIDTH) for cell in row] for row in section.rows]
        text = tabulate(cells, headers=list(map(visible, section.header)), disable_numparse=True)
        parts.append("\n".join([section.title, *([fill(section.note, _NOTE_WIDTH)] if section.note else []), text]))
    return "\n\n".join(parts)


def _sections(comparison: Comparison) -> Iterator[Section]:
    every = [_columns, _matrix, _flips, _shares, _scores, _differences, _latencies, _inabilities]
    yield from (section for make in every if (section := make(comparison)).rows)


def _columns(comparison: Comparison) -> Section:
    rows = [
        [
            made.column,
            made.run if made.complete else f"{made.run} (cut short)",
            ", ".join(f"{count} {name}" for name, count in made.counts.items() if count),
            "; ".join(f"{name} {value}" for name, value in made.facts.items()),
        ]
        for made in comparison.columns
    ]
    return Section(title="What is compared", header=["column", "run", "outcomes", "made with"], rows=rows)


def _matrix(comparison: Comparison) -> Section:
    titles = [made.column for made in comparison.columns]
    rows = [
        [row.story, row.title or views.UNREADABLE, *(_outcome(row.outcomes.get(title)) for title in titles)]
        for row in comparison.rows
    ]
    return Section(title="Stories", header=["story", "title", *titles], rows=rows)


def _outcome(outcome: str | None) -> str:
    return f"{views.SYMBOLS[outcome]} {outcome}" if outcome else "-"


def _flips(comparison: Comparison) -> Section:
    rows = [
        [flip.story, f"{flip.outcome} in {flip.column}", f"{flip.was} in {flip.against}", flip.reason]
        for flip in comparison.flips
    ]
    return Section(title="Flipped", header=["story", "one", "other", "why it failed"], rows=rows)


def _shares(comparison: Comparison) -> Section:
    titles = [made.column for made in comparison.columns]
    rows = [
        [share.kind, share.name, *(_share(share.columns[title]) for title in titles)] for share in comparison.shares
    ]
    return Section(title="By operation and tag", header=["kind", "name", *titles], rows=rows, right=2, note=SHARES)


def _share(counts: Sequence[int]) -> str:
    passed, judged = counts
    return f"{passed}/{judged}" if judged else "-"


def _scores(comparison: Comparison) -> Section:
    places = list(dict.fromkeys((line.story, line.level) for line in comparison.scored))
    metrics = list(dict.fromkeys(name for line in comparison.scored for name in line.scores))
    rows = [
        [
            line.story,
            line.level,
            line.column,
            str(line.questions),
            *(f"{line.scores[name]:.3f}" if name in line.scores else "-" for name in metrics),
        ]
        for line in sorted(comparison.scored, key=lambda line: places.index((line.story, line.level)))
    ]
    return Section(title="Retrieval", header=["story", "level", "column", "n", *metrics], rows=rows, right=3)


def _differences(comparison: Comparison) -> Section:
    metrics = list(dict.fromkeys(found.difference.metric for found in comparison.differences))
    places = list(dict.fromkeys(_line(found)[:2] for found in comparison.differences))
    lines: dict[tuple[str, str, str, str], dict[str, Difference]] = {}
    for found in comparison.differences:
        lines.setdefault(_line(found), {})[found.difference.metric] = found.difference
    rows = [
        [*line, str(max(one.questions for one in cells.values())), *(_difference(cells.get(name)) for name in metrics)]
        for line, cells in sorted(lines.items(), key=lambda item: places.index(item[0][:2]))
    ]
    header = ["story", "level", "column", "against", "n", *metrics]
    return Section(title="Differences in retrieval", header=header, rows=rows, right=4, note=INTERVALS)


def _line(found: ScoreDifference) -> tuple[str, str, str, str]:
    return found.story, found.difference.level, found.column, found.against


def _difference(found: Difference | None) -> str:
    if found is None:
        return "-"
    if found.low == found.high == 0:
        return "0"
    mark = "▲ " if found.is_higher else "▼ " if found.is_lower else ""
    return f"{mark}{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _latencies(comparison: Comparison) -> Section:
    rows = [
        [one.operation, one.column, str(one.count), f"{one.p50_ms:.2f}", f"{one.p95_ms:.2f}"]
        for one in sorted(comparison.latencies, key=lambda one: one.operation)
    ]
    return Section(
        title="Time", header=["operation", "column", "n", "p50 ms", "p95 ms"], rows=rows, right=2, note=TIMES
    )


def _inabilities(comparison: Comparison) -> Section:
    rows = [
        [one.column, one.outcome, str(len(one.stories)), one.reason, _some(one.stories)]
        for one in comparison.inabilities
    ]
    header = ["column", "outcome", "n", "reason", "stories"]
    return Section(title="What could not be judged", header=header, rows=rows)


def _some(stories: Sequence[str]) -> str:
    more = len(stories) - _STORIES_SHOWN
    return ", ".join(stories[:_STORIES_SHOWN]) + (f" and {more} more" if more > 0 else "")
