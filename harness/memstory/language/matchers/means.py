"""Scores of a retrieval task: means over its judged questions, in total, by category, and apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memstory.language.matchers.groups import NUMBER
from memstory.language.registry import Registry
from memstory.results.outcomes import Score
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.scoring import metrics
from memstory.target import Json

_LARGE_SHARE = 0.1
_EARLY_CUT = 5


@dataclass(frozen=True, slots=True)
class Metric:
    """A number for one question, of which a task has the mean: from what was retrieved, what is relevant, and k.

    `is_cut` says that its name ends with the k it looks at, as in `recall@5`. The others look at all that was
    retrieved. `abstains` is a metric of the questions that have no relevant document.
    """

    name: str
    summary: str
    value: Callable[[Sequence[str], Sequence[str], int], float]
    is_cut: bool = True
    abstains: bool = False


METRICS: Registry[Metric] = Registry("metric")
for _metric in (
    Metric("recall", "the part of the relevant documents that is among the first k", metrics.recall_at_k),
    Metric(
        "recall_all",
        "the part of the questions whose relevant documents are all among the first k",
        metrics.recall_all_at_k,
    ),
    Metric("precision", "the part of the first k that is relevant", metrics.precision_at_k),
    Metric("success", "the part of the questions with a relevant document among the first k", metrics.success_at_k),
    Metric("ndcg", "normalised discounted cumulative gain of the first k, binary gains", metrics.ndcg_at_k),
    Metric(
        "mrr",
        "the mean of 1 / rank of the first relevant document",
        lambda retrieved, relevant, _: metrics.reciprocal_rank(retrieved, relevant),
        is_cut=False,
    ),
    Metric(
        "abstention",
        "the part of the questions without an answer for which nothing came back",
        lambda retrieved, _relevant, _k: float(not retrieved),
        is_cut=False,
        abstains=True,
    ),
):
    METRICS.add(_metric)


def metrics_grammar() -> Mapping[str, Json]:
    """Return the grammar of bounds of metrics."""
    cut, whole = ("|".join(one.name for one in METRICS.values() if one.is_cut is kind) for kind in (True, False))
    return {
        "title": "metric", "description": "Bounds of metrics, such as {recall@5: {ge: 0.95}}.",
        "type": "object", "minProperties": 1, "additionalProperties": False,
        "patternProperties": {f"^(({cut})@[1-9][0-9]{{0,3}}|{whole})$": NUMBER},
        "examples": [f"{one.name}@5" if one.is_cut else one.name for one in METRICS.values()],
    }  # fmt: skip


def default_metrics(k: int) -> tuple[str, ...]:
    """Return the metrics that are always reported for a task that looks at k results."""
    early = (f"recall@{_EARLY_CUT}",) if k > _EARLY_CUT else ()
    every = (f"{one.name}@{k}" if one.is_cut else one.name for one in METRICS.values() if not one.abstains)
    return (*early, *every)


def scores_of(record: RetrievalRecord, wanted: Sequence[str] = ()) -> tuple[Score, ...]:
    """Return all scores of a task; `wanted` names metrics beside those that are always reported.

    Categories that stand apart have scores of their own and are no part of the total. Questions that are not judged
    count nowhere; those without a relevant document are scored by `abstention` alone.
    """
    abstaining = [one.name for one in METRICS.values() if one.abstains]
    # Those of the questions without an answer come last.
    names = dict.fromkeys((*default_metrics(record.k), *(one for one in wanted if one not in abstaining), *abstaining))
    judged = [question for question in record.questions if question.judged]
    total = [question for question in judged if question.category not in record.apart]
    scores = list(_scores(total, tuple(names), None, record))
    for category in sorted({question.category for question in judged if question.category is not None}):
        members = [question for question in judged if question.category == category]
        scores += _scores(members, tuple(names), category, record)
    return tuple(scores)


def _scores(
    questions: Sequence[QuestionRecord], names: Sequence[str], category: str | None, record: RetrievalRecord
) -> Iterator[Score]:
    for name in names:
        of_unanswerable = METRICS[name.partition("@")[0]].abstains
        values = [value_of(name, question) for question in questions if bool(question.relevant) != of_unanswerable]
        if values:
            yield Score(metric=name, value=_mean(values), questions=len(values), category=category, level=record.level)


def value_of(name: str, question: QuestionRecord) -> float:
    """Return one metric of one question."""
    word, _, cut = name.partition("@")
    return METRICS[word].value(question.retrieved, question.relevant, int(cut or 0))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def warnings_of(record: RetrievalRecord) -> Iterator[str]:
    """Yield what makes the numbers of a task less than they seem."""
    if record.smallest and record.k > _LARGE_SHARE * record.smallest:
        yield (
            f"k={record.k} is {record.k / record.smallest:.0%} of the smallest collection, which has {record.smallest} "
            "documents: high recall says little there"
        )
    if record.unusable:
        yield f"{len(record.unusable)} gold labels could not be read and are left out: {record.unusable[0]} …"
