"""A comparison laid out as titled tables, once; then written for a terminal, or by `overview` as markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from typing import TypeVar

from tabulate import tabulate

from memstory.reporting import views
from memstory.reporting.comparing.columns import Column
from memstory.reporting.comparing.comparison import Comparison, Made
from memstory.reporting.comparing.growth import Grown
from memstory.reporting.comparing.latency import Latency, Spread
from memstory.reporting.comparing.matrix import JUDGED, Row
from memstory.reporting.comparing.model_tables import (
    BY_STORY_NOTE,
    CALLS_NOTE,
    ModelCalls,
    ModelStory,
    calls_table,
    model_calls,
    models_by_story,
    stories_table,
)
from memstory.reporting.comparing.owed import HEADER, HOW_TO_READ, best_first
from memstory.reporting.comparing.paired import Difference
from memstory.reporting.escaping import shorten, visible
from memstory.results.outcomes import Outcome
from memstory.results.runs import natural, some

_WIDTH = 60
_NOTE_WIDTH = 100
_REASON_LIMIT = 160
FOLDED = 12
"""More rows than this are folded on a page, where a section says that it may be."""

APPENDIX = ("Stories", "Stories of one column")
"""Sections of all stories, which a page has last."""

INTERVALS = (
    "Mean difference over the questions that both were asked, with its 95% interval by paired bootstrap. "
    "▲ is better, ▼ worse, where the interval does not hold 0: the others may be chance. "
    "Metrics in which no column differs at all are left out."
)
TIMES = (
    "Milliseconds of one call: the memory's own work, and what it waited for its embedder within that call (an "
    "embedder with a warm cache takes next to nothing). 'not told' stands for a memory whose embedder is out of reach: "
    "only both together are known. '-' stands for one that names no embedder. Only stories that could be judged count; "
    "where columns could do different stories, the numbers are not of the same work."
)
GROWTH = (
    "Milliseconds without the embedder's: for each memory that is added, up to 10,000 of them in one call, and for a "
    "search, the middle and the slow end (p50 / p95). Found: the share of questions, each the very text of one memory, "
    "for which that memory was among the first results; a store that embeds more than the text finds none of them by "
    "vectors that are drawn by chance. A size that would take longer than the story allows is left out."
)
CAPABILITIES = (
    "Passed of judged. After it: what was asked and could not be judged, which counts neither way: a column with "
    "many of those was asked much that it does not do. A story belongs to every group that its tags and needs name. "
    "Only stories that at least two columns were asked are grouped; the last line counts those of each column alone."
)
ALONE = "Stories about the internals of one memory, which ran in one column only: they compare nothing."
MATRIX = "Stories that at least two columns were asked. '-': this column was not asked."
FLIPS = "Stories that passed in one column and failed in another."
SCORES = (
    "From gold ids, cut to k by the harness: recall@k is the mean share of the right documents among the first k, "
    "ndcg@k rewards placing them early, mrr is the mean of 1 / rank of the first right one, abstention the share of "
    "unanswerable questions that got nothing. n is the number of questions."
)

Cells = TypeVar("Cells")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table of plain text; a section without rows is left out.

    Columns from `right` on hold numbers. `may_fold` allows a page to fold the table where it is long.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: int | None = None
    note: str = ""
    may_fold: bool = False


def as_text(comparison: Comparison) -> str:
    """Return the comparison for a terminal, without control characters."""
    parts = [fill(visible(summary(comparison)), _NOTE_WIDTH)]
    for section in sections(comparison):
        cells = [["\n".join(wrap(visible(cell), _WIDTH)) for cell in row] for row in section.rows]
        text = tabulate(cells, headers=list(map(visible, section.header)), disable_numparse=True)
        parts.append("\n".join([section.title, *([fill(section.note, _NOTE_WIDTH)] if section.note else []), text]))
    return "\n\n".join(parts)


def summary(comparison: Comparison) -> str:
    """Return what is compared, in a few sentences."""
    several = sum(len(row.outcomes) > 1 for row in comparison.rows)
    said = (
        f"Stories: {len(comparison.rows)}, of which {several} were asked of at least two columns. "
        f"Columns: {len(comparison.columns)}, which are targets of one run or of several."
    )
    shared = "; ".join(f"{name} {value}" for name, value in _shared_facts(comparison).items())
    partial = [f"{made.column} ({part})" for made in comparison.columns if (part := _partial(made))]
    return " ".join(
        [
            *_left_out(comparison),
            said,
            *([f"All were made with {shared}."] if shared else []),
            *([f"Not whole runs: {', '.join(partial)}."] if partial else []),
        ]
    )


def _left_out(comparison: Comparison) -> Iterator[str]:
    """Yield which stories are not in all the runs: no run is compared by what another was not asked."""
    runs = {made.column: made.run for made in comparison.columns}
    every = list(dict.fromkeys(runs.values()))
    found: dict[str, list[str]] = {}
    for row in comparison.rows:
        held = [run for run in every if any(runs[column] == run for column in row.outcomes)]
        if held != every:
            found.setdefault(" and ".join(held), []).append(row.story)
    for holders, stories in found.items():
        yield f"Left out because the runs differ, only in {holders}: {some(stories)}."


def _shared_facts(comparison: Comparison) -> Mapping[str, str]:
    first, *others = (made.facts for made in comparison.columns)
    return {name: value for name, value in first.items() if all(facts.get(name) == value for facts in others)}


def _partial(made: Made) -> str:
    """Return what is missing of a column's run, nothing if it is whole."""
    return ", ".join([*([f"only {made.shard}"] if made.shard else []), *([] if made.complete else ["cut short"])])


def sections(comparison: Comparison) -> Iterator[Section]:
    """Yield the tables that have rows, in order."""
    first = [_growth, _owed, _columns, _made_with, _capabilities, _matrix, _alone, _flips, _scores, _differences]
    every = [*first, _latencies, _models, _calls, _inabilities]
    yield from (section for make in every if (section := make(comparison)).rows)


def model_sections(columns: Sequence[Column]) -> list[Section]:
    """Return what language models did in these columns; nothing where none was asked."""
    made = [_calls_section(model_calls(columns)), _models_section(models_by_story(columns))]
    return [section for section in made if section.rows]


def _calls(comparison: Comparison) -> Section:
    return _calls_section(comparison.model_calls)


def _calls_section(found: Sequence[ModelCalls]) -> Section:
    header, rows = calls_table(found)
    return Section(title="Calls of language models", header=header, rows=rows, right=4, note=CALLS_NOTE)


def _models(comparison: Comparison) -> Section:
    return _models_section(comparison.models)


def _models_section(found: Sequence[ModelStory]) -> Section:
    header, rows = stories_table(found)
    return Section(title="Language models by story", header=header, rows=rows, right=1, note=BY_STORY_NOTE)


def _columns(comparison: Comparison) -> Section:
    rows = [
        [
            made.column,
            f"{made.run} ({part})" if (part := _partial(made)) else made.run,
            ", ".join(f"{count} {name}" for name, count in made.counts.items() if count),
        ]
        for made in comparison.columns
    ]
    return Section(title="What is compared", header=["column", "run", "outcomes"], rows=rows)


def _made_with(comparison: Comparison) -> Section:
    """Return each embedder, model, version … once, with the columns that have it."""
    shared = _shared_facts(comparison)
    found: dict[tuple[str, str], list[str]] = {}
    for made in comparison.columns:
        for name, value in made.facts.items():
            if name not in shared:
                found.setdefault((name, value), []).append(made.column)
    rows = [[*fact, ", ".join(titles)] for fact, titles in sorted(found.items())]
    return Section(title="Made with", header=["what", "which", "columns"], rows=rows, may_fold=True)


def _owed(comparison: Comparison) -> Section:
    rows = [[column, *found.cells] for column, found in best_first(comparison.owed)]
    return Section(title="What a memory owes", header=["column", *HEADER], rows=rows, right=1, note=HOW_TO_READ)


def _capabilities(comparison: Comparison) -> Section:
    titles = [made.column for made in comparison.columns]
    rows = [
        [score.name, str(len(score.stories)), *(_share(score.columns[title]) for title in titles)]
        for score in comparison.capabilities
    ]
    header = ["what is asked", "stories", *titles]
    return Section(title="By capability", header=header, rows=rows, right=1, note=CAPABILITIES)


def _share(counts: Mapping[Outcome, int]) -> str:
    """Return `9/12 = 75%, 3 unsupported`; a dash where nothing was asked."""
    judged = sum(counts[outcome] for outcome in JUDGED)
    passed = counts["passed"]
    others = [f"{count} {outcome}" for outcome, count in counts.items() if count and outcome not in JUDGED]
    first = [f"{passed}/{judged} = {100 * passed / judged:.0f}%"] if judged else []
    return ", ".join([*first, *others]) or "-"


def _matrix(comparison: Comparison) -> Section:
    titles = [made.column for made in comparison.columns]
    rows = [
        [*_named(row), *(row.outcomes.get(title) or "-" for title in titles)]
        for row in comparison.rows
        if len(row.outcomes) > 1
    ]
    return Section(title="Stories", header=["story", "title", *titles], rows=rows, note=MATRIX)


def _named(row: Row) -> list[str]:
    return [f"{row.story} {row.slug or ''}".strip(), row.title or views.UNREADABLE]


def _alone(comparison: Comparison) -> Section:
    rows = [
        [*_named(row), column, outcome]
        for row in comparison.rows
        if len(row.outcomes) == 1
        for column, outcome in row.outcomes.items()
    ]
    rows.sort(key=lambda cells: cells[2])
    header = ["story", "title", "column", "outcome"]
    return Section(title="Stories of one column", header=header, rows=rows, note=ALONE, may_fold=True)


def _flips(comparison: Comparison) -> Section:
    rows = [
        [one.story, ", ".join(one.passed), ", ".join(one.failed), shorten(one.reason, _REASON_LIMIT)]
        for one in comparison.disagreements
    ]
    header = ["story", "passed in", "failed in", "why it failed there first"]
    return Section(title="Flipped", header=header, rows=rows, note=FLIPS, may_fold=True)


def _scores(comparison: Comparison) -> Section:
    titles = [made.column for made in comparison.columns]
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    asked: dict[tuple[str, str], int] = {}
    for line in comparison.scored:
        asked[line.story, line.level] = max(line.questions, asked.get((line.story, line.level), 0))
        for metric, value in line.scores.items():
            found.setdefault((line.story, line.level, metric), {})[line.column] = f"{value:.3f}"
    rows = [
        [*place, str(asked[place[:2]]), *(cells.get(title, "-") for title in titles)]
        for place, cells in _by_place(found).items()
    ]
    header = ["story", "level", "metric", "n", *titles]
    return Section(title="Retrieval", header=header, rows=rows, right=3, note=SCORES)


def _differences(comparison: Comparison) -> Section:
    columns = list(dict.fromkeys((found.column, found.against) for found in comparison.differences))
    found: dict[tuple[str, str, str], dict[tuple[str, str], Difference]] = {}
    for one in comparison.differences:
        place = one.story, one.difference.level, one.difference.metric
        found.setdefault(place, {})[one.column, one.against] = one.difference
    rows = [
        [*place, str(max(one.questions for one in cells.values())), *(_difference(cells.get(pair)) for pair in columns)]
        for place, cells in _by_place(found).items()
        if any(one.low or one.high for one in cells.values())
    ]
    header = ["story", "level", "metric", "n", *(f"{column} against {other}" for column, other in columns)]
    return Section(title="Differences in retrieval", header=header, rows=rows, right=3, note=INTERVALS, may_fold=True)


def _by_place(found: Mapping[tuple[str, str, str], Cells]) -> Mapping[tuple[str, str, str], Cells]:
    """Return rows with the levels and metrics of one story together, in the order in which they came up."""
    places = list(dict.fromkeys(place[:2] for place in found))
    ranked = sorted(found, key=lambda place: (natural(place[0]), places.index(place[:2])))
    return {place: found[place] for place in ranked}


def _difference(found: Difference | None) -> str:
    if found is None:
        return "-"
    if found.low == found.high == 0:
        return "0"
    mark = "▲ " if found.is_better else "▼ " if found.is_worse else ""
    return f"{mark}{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _latencies(comparison: Comparison) -> Section:
    rows = [
        [one.operation, one.column, _count(one), *_times(one)]
        for one in sorted(comparison.latencies, key=lambda one: one.operation)
    ]
    header = ["operation", "column", "n", "memory p50 ms", "memory p95 ms", "embedding p50 ms", "embedding p95 ms"]
    header += ["both p50 ms", "both p95 ms"]
    return Section(title="Time", header=header, rows=rows, right=2, note=TIMES, may_fold=True)


def _growth(comparison: Comparison) -> Section:
    sizes = list(dict.fromkeys(f"{one.memories:,}" for one in comparison.growth))
    found: dict[str, dict[str, Grown]] = {}
    for one in comparison.growth:
        found.setdefault(one.column, {})[f"{one.memories:,}"] = one
    rows = [
        [column, *(_grown(of.get(size), what) for what in ("add", "search", "found") for size in sizes)]
        for column, of in found.items()
    ]
    header = ["column", *(f"{what} {size}" for what in ("add", "search", "found") for size in sizes)]
    return Section(title="Growth", header=header, rows=rows, right=1, note=GROWTH)


def _grown(one: Grown | None, what: str) -> str:
    if one is None or one.add_ms is None or one.search is None or one.found is None:
        return one.said if one and what == "add" else "-"
    if what == "add":
        return f"{one.add_ms:.2f}"
    return f"{one.search.p50_ms:.2f} / {one.search.p95_ms:.2f}" if what == "search" else f"{one.found:.2f}"


def _count(one: Latency) -> str:
    return str(one.count) if one.told in (0, one.count) else f"{one.count} ({one.told} told)"


def _times(one: Latency) -> list[str]:
    if not one.embeds:
        return [*_spread(one.whole), "-", "-", *_spread(one.whole)]
    if one.memory is None or one.embedding is None:
        return [*["not told"] * 4, *_spread(one.whole)]
    return [*_spread(one.memory), *_spread(one.embedding), *_spread(one.whole)]


def _spread(spread: Spread) -> list[str]:
    return [f"{spread.p50_ms:.2f}", f"{spread.p95_ms:.2f}"]


def _inabilities(comparison: Comparison) -> Section:
    rows = [
        [one.column, one.outcome, str(len(one.stories)), shorten(one.reason, _REASON_LIMIT), some(one.stories)]
        for one in comparison.inabilities
    ]
    header = ["column", "outcome", "n", "reason", "stories"]
    return Section(title="What could not be judged", header=header, rows=rows, may_fold=True)
