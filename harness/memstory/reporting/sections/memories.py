"""Which memory, and what it loses: one line for each, the first thing that a comparison says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from memstory.contract.values import MADE_BY, STAND_IN
from memstory.reporting.document import DASH, Markup, Note, Section, Table, where_any
from memstory.reporting.sections.cases import lacking
from memstory.reporting.sections.columns import Column
from memstory.reporting.sections.costs import QUESTION, Latency
from memstory.reporting.sections.outcomes import Cause
from memstory.results.outcomes import HARMS, Score
from memstory.results.runs import natural, quantity

_TITLE: Final = "Which memory, and what it loses"
_OURS: Final = "memstory"
_ERROR: Final = "error"
_NEEDS: Final = ("server", "store", "embedder", "infer")
_OF_A_STORY: Final = ("fixed-", "none", "scripted", "off")
_LACKS: Final = 4
"""So many capabilities that a memory lacks are named, those of most stories first."""

_NOTE: Final = Markup(
    "Each number under a harm counts **causes**: cases that failed alike are one fault. *Error*, too, but what "
    "ended so was not judged. *Cannot do* counts the stories that ask for what the memory does not have, and says "
    "what most of them want. Recall has its 95% interval, and p95 is a search of retrieval without the embedder, where "
    "the memory can tell. Sorted by harm, the worst first, then by recall. Memories marked *ours* come with memstory, "
    "whose stories were written beside them: they are below the others."
)


def memories_section(columns: Sequence[Column], found: Sequence[Cause], times: Sequence[Latency]) -> Section:
    """Return the table, the memory with the least harm first; a harm or a score that no column has is left out.

    One column alone is compared with nothing, and has no table.
    """
    if len(columns) == 1:
        return Section(_TITLE, [])
    faults = Counter((one.column, one.harm) for one in found)
    harms = [harm for harm in (*HARMS, _ERROR) if any(faults[one.title, harm] for one in columns)]
    recalls = {one.title: _recalls(one) for one in columns}
    stories = sorted({story for scores in recalls.values() for story in scores}, key=natural)

    def place(column: Column) -> tuple[object, ...]:
        first = recalls[column.title].get(stories[0]) if stories else None
        return _is_ours(column), *(faults[column.title, harm] for harm in harms), -(first.value if first else 0)

    rows = [
        [
            f"{one.title} (ours)" if _is_ours(one) else one.title,
            *(str(faults[one.title, harm] or "") for harm in harms),
            str(one.counts["passed"]),
            _inability(one),
            *(_interval(recalls[one.title].get(story)) for story in stories),
            _slow_end(one, times),
            _needs(one),
        ]
        for one in sorted(columns, key=place)
    ]
    scores = [f"{story} {_metric(recalls, story)}" for story in stories]
    header = ["memory", *harms, "passed", "cannot do", *scores, "search p95 ms", "needs"]
    return Section(_TITLE, where_any(Note(_NOTE), Table(header, rows).without_empty_columns()))


def _is_ours(column: Column) -> bool:
    return _OURS in column.about.get(MADE_BY, ())


def _recalls(column: Column) -> Mapping[str, Score]:
    """Return by story the recall at the most hits of all its questions, where there are enough for an interval."""
    found: dict[str, Score] = {}
    for name, case in column.cases.items():
        for score in case.scores:
            whole = score.category is None and not score.level and score.low is not None
            if whole and score.metric.startswith("recall@"):
                found[name] = max(found.get(name, score), score, key=lambda one: int(one.metric.partition("@")[2]))
    return found


def _metric(recalls: Mapping[str, Mapping[str, Score]], story: str) -> str:
    metric = next(scores[story].metric for scores in recalls.values() if story in scores)
    return metric.replace("recall", "R")


def _interval(score: Score | None) -> str:
    return f"{score.value:.3f} [{score.low:.2f}, {score.high:.2f}]" if score else DASH


def _inability(column: Column) -> str:
    cases = [case for case in column.cases.values() if case.outcome == "unsupported"]
    if not cases:
        return ""
    named = Counter(name for case in cases for name in sorted(lacking(case)))
    shown = [f"`{name}`" for name, _ in named.most_common(_LACKS)]
    rest = [f"{len(named) - _LACKS} more"] if len(named) > _LACKS else []
    return Markup(": ".join(filter(None, [quantity(len(cases), "story"), ", ".join([*shown, *rest])])))


def _slow_end(column: Column, times: Sequence[Latency]) -> str:
    own = {one.operation: one for one in times if one.column == column.title}
    latency = own.get(QUESTION) or own.get("search")
    if latency is None:
        return DASH
    return f"{latency.memory.p95_ms:.1f}" if latency.memory else f"{latency.whole.p95_ms:.1f} with its embedder"


def _needs(column: Column) -> str:
    """Return what the target said that it runs on: its server, its store, its models."""
    said = {name: ", ".join(filter(_is_needed, column.about.get(name, ()))) for name in _NEEDS}
    return "; ".join(f"{name}: {text}" for name, text in said.items() if text)


def _is_needed(value: str) -> bool:
    """Whether it is more than what a story brings itself: a model that follows rules, vectors of its own."""
    return STAND_IN not in value and not value.startswith(_OF_A_STORY)
