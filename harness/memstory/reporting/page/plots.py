"""The plots of the page: recall over k and over distractors, kinds of questions with intervals, growth, latency.

Where their marks are is pure arithmetic; the template `plot.svg` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from textwrap import wrap
from typing import Final

from memstory.reporting.document import TEXT_LIMIT, one_line, shorten, visible
from memstory.reporting.sections.columns import Column
from memstory.reporting.sections.costs import GROWTH, Latency, growth_points
from memstory.results.outcomes import CaseResult, Score
from memstory.results.recording import RetrievalRecord
from memstory.scoring.metrics import mean, recall_at_k
from memstory.tasks.perturbation import level_name

MOST_SERIES: Final = 12
"""Colours that the style sheet has: so many targets are drawn at once, and the reader picks which."""

_LABEL: Final = 40
_LEAST_MS: Final = 0.01
_DISTRACTORS: Final = "distractors"

WIDTH: Final = 360
LEFT, RIGHT, TOP, BOTTOM = 40, 352, 10, 180
MOST_GROUPS: Final = 5
"""Groups of bars that one drawing has room for; a drawing is as wide as a phone."""

_CHARACTER, _LINE, _MOST_LINES = 6.2, 12, 4
"""The width of a character, the height of a line, and how many lines a label has."""

_BARS: Final = 0.8
"""The share of its room that a group of bars takes."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number, with the interval in which it is, where that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place of an axis, in lines."""

    at: float
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotMark:
    """A dot, or a bar if it has a height; `whisker` is the path of its interval, empty for none.

    The bars of all targets at one label share the `room` that begins at `x`: how wide each is depends on how many the
    reader picked, so a bar and its whisker are drawn one unit wide, and the page's script gives them their share.
    """

    x: float
    y: float
    text: str
    room: float = 0.0
    height: float = 0.0
    whisker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The marks of the target with this number; `line` are the points of the line through its dots, empty for bars."""

    column: int
    marks: Sequence[PlotMark]
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that the template writes."""

    labels: Sequence[Label]
    ticks: Sequence[Label]
    series: Sequence[Series]
    height: int
    width: int = WIDTH
    left: int = LEFT
    right: int = RIGHT
    bottom: int = BOTTOM


@dataclass(frozen=True, slots=True)
class Scale:
    """The y axis from `low` to `high`; logarithmic in powers of ten, or linear."""

    low: float
    high: float
    logarithmic: bool = False

    def y(self, value: float) -> float:
        """Return the height of a value; what is outside is drawn at the edge."""
        low, high, at = (map(log10, (self.low, self.high, max(value, self.low))) if self.logarithmic
                         else (self.low, self.high, value))  # fmt: skip
        return round(BOTTOM - (BOTTOM - TOP) * min(1.0, max(0.0, (at - low) / (high - low))), 1)

    def ticks(self) -> list[Label]:
        """Return the marks of the axis."""
        if self.logarithmic:
            values = [10.0**power for power in range(round(log10(self.low)), round(log10(self.high)) + 1)]
        else:
            values = [self.low + (self.high - self.low) * step / 5 for step in range(6)]
        return [Label(self.y(value), [f"{value:g}"]) for value in values]


SHARES: Final = Scale(0.0, 1.0)
"""The axis of scores."""


def powers_around(values: Sequence[float]) -> Scale:
    """Return a logarithmic axis that has room for all `values`, which are above 0.

    >>> powers_around([0.2, 30])
    Scale(low=0.1, high=100.0, logarithmic=True)
    """
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), logarithmic=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot with its title and what it shows in a sentence, in one drawing or several."""

    title: str
    note: str
    plans: Sequence[Plan]


def plots(columns: Sequence[Column], times: Sequence[Latency]) -> Iterator[Plot]:
    """Yield the plots of all retrieval stories of the columns, then that of latency."""
    for story in dict.fromkeys(name for column in columns for name, case in column.cases.items() if case.retrieval):
        asked = [(at, one.cases[story]) for at, one in enumerate(columns) if story in one.cases]
        cases = {at: case for at, case in asked if case.retrieval}
        if GROWTH in next(iter(cases.values())).tags:
            continue
        title = visible(one_line(f"{story}: {next(iter(cases.values())).title}", TEXT_LIMIT))
        yield from _over_k(title, cases)
        yield from _over_distractors(title, cases)
        yield from _by_category(title, cases)
    yield from _growth(columns)
    yield from _latency({column.title: at for at, column in enumerate(columns)}, times)


def _over_k(title: str, cases: Mapping[int, CaseResult]) -> Iterator[Plot]:
    """Recall among the first 1, 2, … k hits of the plain task."""
    k = min(case.retrieval[0].k for case in cases.values())
    found = {at: _recalls(case.retrieval[0], k) for at, case in cases.items()}
    series = {at: values for at, values in found.items() if values}
    if series and k > 1:
        note = "Mean share of the right memories among the first k hits."
        plan = lines([str(n) for n in range(1, k + 1)], series, SHARES)
        yield Plot(title=f"{title} – recall over k", note=note, plans=[plan])


def _recalls(record: RetrievalRecord, k: int) -> Sequence[Value]:
    asked = [one for one in record.counted if one.relevant]
    if not asked:
        return ()
    return [Value(mean(recall_at_k(one.retrieved, one.relevant, k=n) for one in asked)) for n in range(1, k + 1)]


def _over_distractors(title: str, cases: Mapping[int, CaseResult]) -> Iterator[Plot]:
    found: dict[int, dict[int, Value]] = {}
    for at, case in cases.items():
        for score in case.scores:
            perturbed = {key for key, value in score.level.items() if value}
            if _is_recall(score, case) and score.category is None and perturbed <= {_DISTRACTORS} and score.level:
                found.setdefault(at, {})[int(score.level.get(_DISTRACTORS, 0))] = Value(score.value)
    counts = sorted({count for values in found.values() for count in values})
    if len(counts) > 1:
        series = {at: [values.get(count) for count in counts] for at, values in found.items()}
        note = "Recall when more memories are stored that answer nothing."
        plan = lines([f"{count:,}" for count in counts], series, SHARES)
        yield Plot(title=f"{title} – recall over distractors", note=note, plans=[plan])


def _by_category(title: str, cases: Mapping[int, CaseResult]) -> Iterator[Plot]:
    found: dict[int, dict[str, Value]] = {}
    for at, case in cases.items():
        for score in case.scores:
            if score.category and _is_recall(score, case) and level_name(score.level) in {"", "plain"}:
                found.setdefault(at, {})[score.category] = Value(score.value, score.low, score.high)
    categories = sorted({category for scores in found.values() for category in scores})
    if len(categories) > 1:
        series = {at: [scores.get(one) for one in categories] for at, scores in found.items()}
        note = "Recall for each kind of question; whiskers are the 95% interval, where it was taken."
        labels = [_label(one.replace("_", " ")) for one in categories]
        yield Plot(title=f"{title} – by kind of question", note=note, plans=panels(labels, series, SHARES))


def _is_recall(score: Score, case: CaseResult) -> bool:
    return score.metric == f"recall@{case.retrieval[0].k}"


def _growth(columns: Sequence[Column]) -> Iterator[Plot]:
    """What a search and an added memory cost at each size."""
    points = [one for one in growth_points(columns) if one.add_ms is not None and one.search is not None]
    sizes = sorted({one.memories for one in points})
    at = {column.title: place for place, column in enumerate(columns)}
    for what, means in (("search", "The middle of all searches"), ("add", "What adding one memory takes")):
        series: dict[int, list[Value | None]] = {}
        for one in points:
            taken = one.search.p50_ms if what == "search" and one.search else one.add_ms or 0.0
            series.setdefault(at[one.column], [None] * len(sizes))[sizes.index(one.memories)] = Value(
                max(taken, _LEAST_MS)
            )
        if len(sizes) > 1:
            scale = powers_around([one.value for values in series.values() for one in values if one])
            plan = lines([f"{size:,}" for size in sizes], series, scale)
            note = f"{means}, in milliseconds without the embedder's, over memories stored; the axis is logarithmic."
            yield Plot(title=f"Growth – {what}", note=note, plans=[plan])


def _latency(places: Mapping[str, int], times: Sequence[Latency]) -> Iterator[Plot]:
    operations = sorted({one.operation for one in times})
    if not operations:
        return
    series: dict[int, list[Value | None]] = {at: [None] * len(operations) for at in places.values()}
    for one in times:
        series[places[one.column]][operations.index(one.operation)] = Value(max(one.whole.p95_ms, _LEAST_MS))
    scale = powers_around([one.value for values in series.values() for one in values if one])
    note = "Milliseconds of one call that 95% of the calls do not exceed; the axis is logarithmic."
    drawings = panels([_label(one) for one in operations], series, scale)
    yield Plot(title="Latency by operation", note=note, plans=drawings)


def _label(text: str) -> str:
    return shorten(visible(text), _LABEL)


def lines(labels: Sequence[str], series: Mapping[int, Sequence[Value | None]], scale: Scale) -> Plan:
    """Return a line for each target in `series`, with a value for each label, None for a gap.

    Of more labels than there is room for, every second, third … is written.
    """
    room = (RIGHT - LEFT) / len(labels)
    step = ceil((max(map(len, labels)) + 1) * _CHARACTER / room)
    drawn = []
    for column, values in series.items():
        marks = [
            PlotMark(
                x=round(LEFT + room * (place + 0.5), 1), y=scale.y(one.value), text=f"{labels[place]}: {one.value:.3f}"
            )
            for place, one in enumerate(values)
            if one is not None
        ]
        drawn.append(Series(column=column, marks=marks, line=" ".join(f"{mark.x},{mark.y}" for mark in marks)))
    return _plan(labels, drawn, scale, step)


def panels(labels: Sequence[str], series: Mapping[int, Sequence[Value | None]], scale: Scale) -> list[Plan]:
    """Return bars in as many drawings as their labels need, which stand side by side where there is room."""
    size = ceil(len(labels) / ceil(len(labels) / MOST_GROUPS))
    return [
        bars(labels[at : at + size], {column: values[at : at + size] for column, values in series.items()}, scale)
        for at in range(0, len(labels), size)
    ]


def bars(labels: Sequence[str], series: Mapping[int, Sequence[Value | None]], scale: Scale) -> Plan:
    """Return a group of bars for each label, one for each target in `series`, with the whiskers of intervals."""
    room = (RIGHT - LEFT) / len(labels)
    drawn = []
    for column, values in series.items():
        marks = []
        for place, one in enumerate(values):
            if one is None:
                continue
            x, y = LEFT + room * (place + (1 - _BARS) / 2), scale.y(one.value)
            whisker = (
                f"M.5 {scale.y(one.low)}V{scale.y(one.high)}" if one.low is not None and one.high is not None else ""
            )
            interval = f" [{one.low:.2f}, {one.high:.2f}]" if one.low is not None else ""
            marks.append(PlotMark(x=round(x, 1), y=y, room=round(room * _BARS, 1), height=round(BOTTOM - y, 1),
                              text=f"{labels[place]}: {one.value:.3g}{interval}", whisker=whisker))  # fmt: skip
        drawn.append(Series(column=column, marks=marks))
    return _plan(labels, drawn, scale)


def _plan(labels: Sequence[str], drawn: Sequence[Series], scale: Scale, step: int = 1) -> Plan:
    room = (RIGHT - LEFT) / len(labels)
    placed = [
        Label(
            round(LEFT + room * (place + 0.5), 1),
            wrap(text, max(1, int(room * step / _CHARACTER)), max_lines=_MOST_LINES, placeholder="…"),
        )
        for place, text in enumerate(labels)
        if place % step == 0
    ]
    height = BOTTOM + 8 + _LINE * max(len(label.lines) for label in placed)
    return Plan(labels=placed, ticks=scale.ticks(), series=drawn, height=height)
