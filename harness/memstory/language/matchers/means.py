"""The metrics of a retrieval task, and its scores: means over the judged questions, in total and by category."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from memstory.language.registry import Registry
from memstory.results.outcomes import Score
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.scoring import metrics
from memstory.scoring.metrics import threshold_accuracy
from memstory.scoring.statistics import Sample, cluster_bootstrap, stratified_mean

_LARGE_SHARE = 0.1
BY_CUT = ("success", "recall", "ndcg")
"""Metrics that are taken at each of several cuts."""
_EARLY_CUT, _EARLY = 5, ("recall", "macro_recall")
_SEVERAL = 2
_SEED = 1
_CUT = re.compile("[1-9][0-9]{0,3}")


def has_gold(question: QuestionRecord) -> bool:
    """Return whether some document answers the question."""
    return bool(question.relevant)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number for each question, of which a task has the mean.

    Attributes:
        name: What a story writes, without the cut.
        summary: What it is, in a few words without a full stop.
        value: (question, k) -> the number.
        is_cut: Whether its name ends with k, as in `recall@5`; otherwise it looks at all that was retrieved.
        applies_to: Question -> whether it is part of the mean.
        by_category: Whether the mean is one of the means of the categories, which then weigh the same.
        less_is_better: Whether a lower number is better.
        overall: Questions -> the number of a task, for a metric that is no mean; None if they do not give one.
    """

    name: str
    summary: str
    value: Callable[[QuestionRecord, int], float]
    is_cut: bool = True
    applies_to: Callable[[QuestionRecord], bool] = has_gold
    by_category: bool = False
    less_is_better: bool = False
    overall: Callable[[Sequence[QuestionRecord]], float | None] | None = None


def _of_rank(score: Callable[[Sequence[str], Sequence[str], int], float]) -> Callable[[QuestionRecord, int], float]:
    return lambda question, k: score(question.retrieved, question.relevant, k)


def threshold_accuracy_of(questions: Sequence[QuestionRecord]) -> float | None:
    """Return how well a threshold tells questions with an answer from those without; None without a number for each.

    The number of a question is what the memory explains as `answerable`, or else the score of the first hit.
    """
    best = [(has_gold(one), _confidence(one)) for one in questions]
    scores = [(answerable, score) for answerable, score in best if score is not None]
    if len(scores) < len(best):
        return None
    answerable, unanswerable = ([score for kind, score in scores if kind is wanted] for wanted in (True, False))
    return threshold_accuracy(answerable, unanswerable)


def _confidence(question: QuestionRecord) -> float | None:
    if question.answerable is not None:
        return question.answerable
    return question.scores[0] if question.scores else -inf


METRICS: Registry[Metric] = Registry("metric")
for _metric in (
    Metric("recall", "the part of the relevant documents that is among the first k", _of_rank(metrics.recall_at_k)),
    Metric(
        "recall_all",
        "the part of the questions whose relevant documents are all among the first k",
        _of_rank(metrics.recall_all_at_k),
    ),
    Metric("precision", "the part of the first k that is relevant", _of_rank(metrics.precision_at_k)),
    Metric(
        "success", "the part of the questions with a relevant document among the first k",
        _of_rank(metrics.success_at_k),
    ),
    Metric(
        "ndcg", "normalised discounted cumulative gain of the first k, binary gains", _of_rank(metrics.ndcg_at_k)
    ),
    Metric(
        "mrr",
        "the mean of 1 / rank of the first relevant document",
        lambda question, _: metrics.reciprocal_rank(question.retrieved, question.relevant),
        is_cut=False,
    ),
    Metric(
        "macro_recall", "recall, as the mean over the means of the categories", _of_rank(metrics.recall_at_k),
        by_category=True,
    ),
    Metric(
        "macro_ndcg", "ndcg, as the mean over the means of the categories", _of_rank(metrics.ndcg_at_k),
        by_category=True,
    ),
    Metric(
        "stale_share",
        "the part of the questions with outdated documents where one of those ranks above every relevant one; "
        "if neither is found, it does not",
        lambda question, _: metrics.is_stale_first(question.retrieved, question.relevant, question.stale),
        is_cut=False,
        applies_to=lambda question: bool(question.relevant and question.stale),
        less_is_better=True,
    ),
    Metric(
        "context_tokens",
        "the mean number of tokens that came back for a question, at a token for four characters",
        lambda question, _: float(question.tokens or 0),
        is_cut=False,
        applies_to=lambda question: question.tokens is not None,
        less_is_better=True,
    ),
    Metric(
        "abstention",
        "the part of the questions without an answer for which nothing came back",
        lambda question, _: float(not question.retrieved),
        is_cut=False,
        applies_to=lambda question: not question.relevant,
    ),
    Metric(
        "abstention_accuracy",
        "the mean of two shares, answered where there is an answer and silent where there is none, when a memory keeps "
        "quiet below a score, or what it explains as `answerable`, that one half of the questions chooses for the "
        "other, both ways; .5 is chance",
        lambda question, _: float(not question.retrieved),
        is_cut=False,
        overall=threshold_accuracy_of,
    ),
):  # fmt: skip
    METRICS.add(_metric)


def default_metrics(k: int, cuts: Sequence[int] = ()) -> tuple[str, ...]:
    """Return the names of the metrics that are always reported for k results, and for each of the `cuts`."""
    early = tuple(f"{name}@{_EARLY_CUT}" for name in _EARLY) if k > _EARLY_CUT else ()
    more = tuple(f"{name}@{cut}" for cut in cuts for name in BY_CUT)
    return (*early, *more, *(f"{one.name}@{k}" if one.is_cut else one.name for one in METRICS.values()))


def scores_of(record: RetrievalRecord, wanted: Sequence[str] = ()) -> tuple[Score, ...]:
    """Return the scores of a task, for the metrics that are always reported and those named in `wanted`.

    Categories in `record.apart` have scores of their own and are no part of the total. Questions that are not judged
    are left out. Totals, and recall at k by category, have intervals if the questions have clusters or are a sample.
    """
    names = dict.fromkeys((*default_metrics(record.k, record.cuts), *wanted))
    judged = [question for question in record.questions if question.judged]
    total = [question for question in judged if question.category not in record.apart]
    is_sample = record.drawn_from is not None
    scores = [score for name in names if (score := _total(name, total, judged, is_sample=is_sample))]
    for category in sorted({question.category for question in judged if question.category is not None}):
        members = [question for question in judged if question.category == category]
        found = [score for name in names if (score := _of_category(name, members, category))]
        scores += [
            _with_interval(score, members, is_sample=is_sample) if score.metric == f"recall@{record.k}" else score
            for score in found
        ]
    return tuple(replace(score, level=record.level) for score in scores)


def _of_category(name: str, members: Sequence[QuestionRecord], category: str) -> Score | None:
    metric = metric_of(name)
    values = _values(name, [question for question in members if metric.applies_to(question)])
    if not values or metric.by_category or metric.overall:
        return None
    return Score(metric=name, value=metrics.mean(values), questions=len(values), category=category)


def _total(
    name: str, total: Sequence[QuestionRecord], judged: Sequence[QuestionRecord], *, is_sample: bool
) -> Score | None:
    metric = metric_of(name)
    if metric.overall:
        found = metric.overall(judged)
        return None if found is None else Score(metric=name, value=found, questions=len(judged))
    counted = [question for question in total if metric.applies_to(question)]
    strata = [question.category or "" for question in counted] if metric.by_category else [""] * len(counted)
    if not counted or (metric.by_category and len(set(strata)) < _SEVERAL):
        return None
    sample = _sample(name, counted, strata)
    score = Score(metric=name, value=stratified_mean(sample), questions=len(counted))
    return _add_interval(score, sample) if is_sample or any(question.cluster for question in counted) else score


def _with_interval(score: Score, members: Sequence[QuestionRecord], *, is_sample: bool) -> Score:
    counted = [question for question in members if metric_of(score.metric).applies_to(question)]
    if not is_sample and not any(question.cluster for question in counted):
        return score
    return _add_interval(score, _sample(score.metric, counted, [""] * len(counted)))


def _sample(name: str, counted: Sequence[QuestionRecord], strata: Sequence[str]) -> Sample:
    return Sample(
        values=_values(name, counted),
        clusters=[question.cluster or question.id for question in counted],
        strata=strata,
    )


def _add_interval(score: Score, sample: Sample) -> Score:
    interval = cluster_bootstrap(sample, seed=_SEED)
    return replace(score, low=interval.low, high=interval.high)


def is_metric(name: str) -> bool:
    """Return whether there is a metric of this name, with a k if and only if it takes one."""
    word, at, k = name.partition("@")
    return word in METRICS and METRICS[word].is_cut == bool(at) and (not at or _CUT.fullmatch(k) is not None)


def metric_of(name: str) -> Metric:
    """Return the metric of a name, such as `recall@5`; KeyError if it is unknown."""
    return METRICS[name.partition("@")[0]]


def value_of(name: str, question: QuestionRecord) -> float:
    """Return the number of the metric `name` for one question."""
    (value,) = _values(name, [question])
    return value


def _values(name: str, questions: Sequence[QuestionRecord]) -> list[float]:
    value, k = metric_of(name).value, int(name.partition("@")[2] or 0)
    return [value(question, k) for question in questions]


def warnings_of(record: RetrievalRecord) -> Iterator[str]:
    """Yield a sentence for each reason to doubt the scores of a task."""
    if record.smallest and record.k > _LARGE_SHARE * record.smallest:
        yield (
            f"k={record.k} is {record.k / record.smallest:.0%} of the smallest collection, which has {record.smallest} "
            "documents: high recall says little there"
        )
    named = {gold for question in record.questions for gold in question.relevant}
    came = [id_ for question in record.questions for id_ in question.retrieved]
    if record.preloaded is not None and came and named and named.isdisjoint(came):
        yield (
            f"no id that came back is one that the labels name: {came[0]!r} came back, {min(named)!r} is named; 'ids' "
            "of the retrieval says where a hit has its id"
        )
    if record.refused:
        yield (
            f"{len(record.refused)} of {record.documents} documents were refused and count as missed where they are "
            f"gold: {record.refused[0]} …"
        )
    if record.unusable:
        yield f"{len(record.unusable)} gold labels could not be read and are left out: {record.unusable[0]} …"
