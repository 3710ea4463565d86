"""Plots as SVG inside the page. pygal draws them; colours are those of the page's own style sheet, light or dark."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree as ET

from memstory.reporting.comparing.columns import Column
from memstory.reporting.comparing.latency import Latency
from memstory.reporting.escaping import shorten, visible
from memstory.results.outcomes import CaseResult, Score
from memstory.results.recording import RetrievalRecord
from memstory.scoring.metrics import mean, recall_at_k
from memstory.tasks.perturbation import level_name

MOST_SERIES: Final = 12
"""Colours that the style sheet has; of more targets the first are drawn, and the note says so."""

_LABEL: Final = 40
_ONE_LINE: Final = 90
"""Characters that fit below a plot; longer labels are turned."""

_SVG: Final = "{http://www.w3.org/2000/svg}"
_DROPPED: Final = frozenset({"script", "style"})
_DISTRACTORS: Final = "distractors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot with its title and what it shows in one sentence; `svg` is safe markup."""

    title: str
    note: str
    svg: str


Series = Mapping[str, Sequence[Any]]
"""Name -> a value for each label: a number, None for a gap, or `{"value": …, "ci": {"low": …, "high": …}}`."""


def plots(columns: Sequence[Column], times: Sequence[Latency]) -> Iterator[Plot]:
    """Yield the plots of all retrieval stories of the columns, then that of latency."""
    for story in dict.fromkeys(name for column in columns for name, case in column.cases.items() if case.retrieval):
        cases = {one.title: one.cases[story] for one in columns if story in one.cases and one.cases[story].retrieval}
        title = f"{story}: {next(iter(cases.values())).title}"
        yield from _over_k(title, cases)
        yield from _over_distractors(title, cases)
        yield from _by_category(title, cases)
    yield from _latency(times)


def _over_k(title: str, cases: Mapping[str, CaseResult]) -> Iterator[Plot]:
    """Recall among the first 1, 2, … k hits of the plain task."""
    k = min(case.retrieval[0].k for case in cases.values())
    series = {name: _recalls(case.retrieval[0], k) for name, case in cases.items()}
    series = {name: values for name, values in series.items() if values}
    if series and k > 1:
        yield _drawn("Line", f"{title} – recall over k", "Mean share of the right memories among the first k hits.",
                     list(map(str, range(1, k + 1))), series)  # fmt: skip


def _recalls(record: RetrievalRecord, k: int) -> Sequence[float]:
    asked = [one for one in record.questions if one.judged and one.relevant and one.category not in record.apart]
    if not asked or any(one.ranks is not None for one in asked):
        return ()
    return [mean(recall_at_k(one.retrieved, one.relevant, k=n) for one in asked) for n in range(1, k + 1)]


def _over_distractors(title: str, cases: Mapping[str, CaseResult]) -> Iterator[Plot]:
    found: dict[str, dict[int, float]] = {}
    for name, case in cases.items():
        for score in case.scores:
            only_distractors = {key for key, value in score.level.items() if value} <= {_DISTRACTORS}
            if _is_recall(score, case) and score.category is None and only_distractors and _DISTRACTORS in score.level:
                found.setdefault(name, {})[int(score.level[_DISTRACTORS])] = score.value
    counts = sorted({count for values in found.values() for count in values})
    if len(counts) > 1:
        series = {name: [values.get(count) for count in counts] for name, values in found.items()}
        note = "Recall when more memories are stored that answer nothing."
        yield _drawn("Line", f"{title} – recall over distractors", note, [f"{count:,}" for count in counts], series)


def _by_category(title: str, cases: Mapping[str, CaseResult]) -> Iterator[Plot]:
    found: dict[str, dict[str, Score]] = {}
    for name, case in cases.items():
        for score in case.scores:
            if score.category and _is_recall(score, case) and level_name(score.level) in {"", "plain"}:
                found.setdefault(name, {})[score.category] = score
    categories = sorted({category for scores in found.values() for category in scores})
    if len(categories) > 1:
        series = {name: [_with_interval(scores.get(one)) for one in categories] for name, scores in found.items()}
        note = "Recall for each kind of question; the whiskers are the 95% interval."
        labels = [one.replace("_", " ") for one in categories]
        yield _drawn("Bar", f"{title} – by kind of question", note, labels, series)


def _with_interval(score: Score | None) -> Any:
    if score is None or score.low is None or score.high is None:
        return score.value if score else None
    return {"value": score.value, "ci": {"low": score.low, "high": score.high}}


def _is_recall(score: Score, case: CaseResult) -> bool:
    return score.metric == f"recall@{case.retrieval[0].k}"


def _latency(times: Sequence[Latency]) -> Iterator[Plot]:
    operations = sorted({one.operation for one in times})
    series: dict[str, list[float | None]] = {one.column: [None] * len(operations) for one in times}
    for one in times:
        series[one.column][operations.index(one.operation)] = max(one.whole.p95_ms, 0.01)
    if operations:
        note = "Milliseconds of one call that 95% of the calls do not exceed; the axis is logarithmic."
        yield _drawn("Bar", "Latency by operation", note, operations, series, logarithmic=True)


def _drawn(
    kind: str, title: str, note: str, labels: Sequence[str], series: Series, *, logarithmic: bool = False
) -> Plot:
    pygal = _pygal()
    scale = {"logarithmic": True} if logarithmic else {"range": (0, 1)}
    chart = getattr(pygal, kind)(
        css=[], js=[], width=900, height=360, explicit_size=False, show_legend=False, no_prefix=True,
        x_label_rotation=30 if max(map(len, labels)) * len(labels) > _ONE_LINE else 0, dots_size=3, **scale,
    )  # fmt: skip
    chart.x_labels = [_named(label) for label in labels]
    for name, values in list(series.items())[:MOST_SERIES]:
        chart.add(_named(name), list(values))
    more = len(series) - MOST_SERIES
    said = f"{note} The first {MOST_SERIES} of {len(series)} targets are drawn." if more > 0 else note
    return Plot(title=title, note=said, svg=_svg(chart.render_tree(), title))


def _named(text: str) -> str:
    return shorten(visible(text), _LABEL)


def _pygal() -> Any:
    """Return pygal, imported when the first plot is drawn: a start of pytest must not pay for it."""
    before = list(sys.meta_path)
    import pygal  # noqa: PLC0415  (see the docstring)

    # It leaves a finder of an outdated kind, which makes every later import of a missing module warn.
    sys.meta_path[:] = [one for one in sys.meta_path if one in before or hasattr(one, "find_spec")]
    return pygal


def _svg(root: ET.Element, title: str) -> str:
    """Return the drawing without its scripts, styles and tooltips; values become titles, which a browser shows."""
    for parent in root.iter():
        for child in list(parent):
            tag = str(child.tag).removeprefix(_SVG)
            if not isinstance(child.tag, str) or tag in _DROPPED or "tooltip" in child.get("class", "").split():
                parent.remove(child)
        _tell_value(parent)
    root.attrib.pop("id", None)
    root.set("role", "img")
    root.set("aria-label", title)
    for child in list(root):
        if child.tag == "title":
            root.remove(child)
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _tell_value(group: ET.Element) -> None:
    said = {one.get("class", "").split()[0]: one.text or "" for one in group if one.tag == "desc"}
    for one in [one for one in group if one.tag == "desc"]:
        group.remove(one)
    if "value" in said:
        title = ET.SubElement(group, "title")
        title.text = ", ".join(filter(None, [said.get("x_label", ""), said["value"]]))
