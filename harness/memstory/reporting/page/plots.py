"""The plots of the page: recall over k and over distractors, kinds of questions with intervals, growth, latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.reporting.comparing.growth import TAG, growth
from memstory.reporting.comparing.latency import Latency
from memstory.reporting.escaping import shorten, visible
from memstory.reporting.page.drawing import SHARES, Plan, Value, lines, panels, powers_around
from memstory.results.outcomes import CaseResult, Score
from memstory.results.recording import RetrievalRecord
from memstory.scoring.metrics import mean, recall_at_k
from memstory.tasks.perturbation import level_name

MOST_SERIES: Final = 12
"""Colours that the style sheet has: only the first targets are drawn, and the tables have the others."""

_LABEL: Final = 40
_LEAST_MS: Final = 0.01
_DISTRACTORS: Final = "distractors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot with its title and what it shows in a sentence, in one drawing or several.

    The colour of a target is its place among the columns.
    """

    title: str
    note: str
    plans: Sequence[Plan]


def plots(columns: Sequence[Column], times: Sequence[Latency]) -> Iterator[Plot]:
    """Yield the plots of all retrieval stories of the columns, then that of latency."""
    drawn = list(enumerate(columns[:MOST_SERIES]))
    for story in dict.fromkeys(name for _, column in drawn for name, case in column.cases.items() if case.retrieval):
        cases = {at: one.cases[story] for at, one in drawn if story in one.cases and one.cases[story].retrieval}
        if TAG in next(iter(cases.values())).tags:
            continue
        title = visible(f"{story}: {next(iter(cases.values())).title}")
        yield from _over_k(title, cases)
        yield from _over_distractors(title, cases)
        yield from _by_category(title, cases)
    yield from _growth([column for _, column in drawn])
    yield from _latency({column.title: at for at, column in drawn}, times)


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
    asked = [one for one in record.questions if one.judged and one.relevant and one.category not in record.apart]
    if not asked or any(one.ranks is not None for one in asked):
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
        labels = [_named(one.replace("_", " ")) for one in categories]
        yield Plot(title=f"{title} – by kind of question", note=note, plans=panels(labels, series, SHARES))


def _is_recall(score: Score, case: CaseResult) -> bool:
    return score.metric == f"recall@{case.retrieval[0].k}"


def _growth(columns: Sequence[Column]) -> Iterator[Plot]:
    """What a search and an added memory cost at each size."""
    grown = [one for one in growth(columns) if one.add_ms is not None and one.search is not None]
    sizes = sorted({one.memories for one in grown})
    at = {column.title: place for place, column in enumerate(columns)}
    for what, means in (("search", "The middle of all searches"), ("add", "What adding one memory takes")):
        series: dict[int, list[Value | None]] = {}
        for one in grown:
            taken = one.search.p50_ms if what == "search" and one.search else one.add_ms or 0.0
            series.setdefault(at[one.column], [None] * len(sizes))[sizes.index(one.memories)] = Value(
                max(taken, _LEAST_MS)
            )
        if len(sizes) > 1:
            scale = powers_around([one.value for values in series.values() for one in values if one])
            plan = lines([f"{size:,}" for size in sizes], series, scale)
            note = f"{means}, in milliseconds without the embedder's, over memories stored; the axis is logarithmic."
            yield Plot(title=f"Growth – {what}", note=note, plans=[plan])


def _latency(colours: Mapping[str, int], times: Sequence[Latency]) -> Iterator[Plot]:
    shown = [one for one in times if one.column in colours]
    operations = sorted({one.operation for one in shown})
    if not operations:
        return
    series: dict[int, list[Value | None]] = {at: [None] * len(operations) for at in sorted(colours.values())}
    for one in shown:
        series[colours[one.column]][operations.index(one.operation)] = Value(max(one.whole.p95_ms, _LEAST_MS))
    scale = powers_around([one.value for values in series.values() for one in values if one])
    note = "Milliseconds of one call that 95% of the calls do not exceed; the axis is logarithmic."
    drawings = panels([_named(one) for one in operations], series, scale)
    yield Plot(title="Latency by operation", note=note, plans=drawings)


def _named(text: str) -> str:
    return shorten(visible(text), _LABEL)
