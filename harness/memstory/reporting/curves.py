"""Scores with and without perturbations, level by level, with an interval on what each level costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from memstory.reporting.escaping import inline, table
from memstory.results.outcomes import CaseResult
from memstory.results.recording import RetrievalRecord
from memstory.results.runs import Run
from memstory.scoring.metrics import reciprocal_rank
from memstory.scoring.statistics import paired_bootstrap
from memstory.tasks.perturbation import level_name

_SEED: Final = 0
_LEFT_OUT: Final = ("precision@", "recall_all@")
_EXPLAINED: Final = """\
With and without perturbations: the brackets show the difference from the plain task of the same case. The last column
is the change of MRR with its 95% interval, over the same questions (paired bootstrap); where it holds 0,
nothing is shown."""


def curves(run: Run) -> str:
    """Return a table for each perturbed story; empty if there is none."""
    stories: dict[str, list[CaseResult]] = {}
    for case in run.cases:
        if len({level_name(score.level) for score in case.scores}) > 1:
            stories.setdefault(case.name, []).append(case)
    tables = [f"**{inline(name)}**\n\n{_table(cases)}" for name, cases in stories.items()]
    return "\n\n".join([_EXPLAINED, *tables]) if tables else ""


def _table(cases: Sequence[CaseResult]) -> str:
    metrics = dict.fromkeys(
        score.metric
        for case in cases
        for score in case.scores
        if score.category is None and not score.metric.startswith(_LEFT_OUT)
    )
    header = ["Target", "Level", *map(inline, metrics), "MRR change"]
    rows = [row for case in cases for row in _rows(case, list(metrics))]
    return table(header, rows, right=range(2, len(header)))


def _rows(case: CaseResult, metrics: Sequence[str]) -> Iterator[list[str]]:
    totals: dict[str, dict[str, float]] = {}
    for score in case.scores:
        if score.category is None:
            totals.setdefault(level_name(score.level), {})[score.metric] = score.value
    plain = next(iter(totals.values()))
    ranks = {level_name(record.level): _reciprocal_ranks(record) for record in case.retrieval}
    for level, values in totals.items():
        yield [
            inline(case.target),
            inline(level),
            *(_cell(values.get(name), None if values is plain else plain.get(name)) for name in metrics),
            "" if values is plain else _change(ranks.get(next(iter(totals)), {}), ranks.get(level, {})),
        ]


def _cell(value: float | None, plain: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if plain is None else f"{value:.3f} ({value - plain:+.3f})"


def _reciprocal_ranks(record: RetrievalRecord) -> Mapping[str, float]:
    """Return the mean reciprocal rank of each question over its variants `question~1`, `question~2`."""
    found: dict[str, list[float]] = {}
    for asked in record.questions:
        if asked.judged and asked.relevant and asked.category not in record.apart:
            name = asked.id.rpartition("~")[0] if record.level.get("paraphrase") else ""
            rank = reciprocal_rank(asked.retrieved, asked.relevant)
            found.setdefault(name or asked.id, []).append(rank)
    return {name: fmean(values) for name, values in found.items()}


def _change(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    both = [name for name in before if name in after]
    if not both:
        return "-"
    change = paired_bootstrap([before[name] for name in both], [after[name] for name in both], seed=_SEED)
    return f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
