"""Scores of a retrieval task: means over its judged questions, in total, by category, and apart."""

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
    """Return whether something answers the question."""
    return bool(question.relevant)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number for one question, of which a task has the mean over the questions that it `counts`: from record and k.

    `is_cut` says that its name ends with the k it looks at, as in `recall@5`. The others look at all that was
    retrieved. One that is `by_category` has the mean of the means of all categories, which then weigh the same.
    `together` is for a number of all questions that is not a mean; None where it cannot be taken.
    """

    name: str
    summary: str
    value: Callable[[QuestionRecord, int], float]
    is_cut: bool = True
    counts: Callable[[QuestionRecord], bool] = has_gold
    by_category: bool = False
    less_is_better: bool = False
    together: Callable[[Sequence[QuestionRecord]], float | None] | None = None


def _ranked(score: Callable[[Sequence[str], Sequence[str], int], float]) -> Callable[[QuestionRecord, int], float]:
    return lambda question, k: score(question.retrieved, question.relevant, k)


def threshold_accuracy_of(questions: Sequence[QuestionRecord]) -> float | None:
    """Return how well each question's best number tells whether it has an answer; None without such numbers.

    That is what the memory calls `answerable`, or the score of the first hit.
    """
    best = [(has_gold(one), _sureness(one)) for one in questions]
    scores = [(answerable, score) for answerable, score in best if score is not None]
    if len(scores) < len(best):
        return None
    answerable, unanswerable = ([score for kind, score in scores if kind is wanted] for wanted in (True, False))
    return threshold_accuracy(answerable, unanswerable)


def _sureness(question: QuestionRecord) -> float | None:
    if question.answerable is not None:
        return question.answerable
    return question.scores[0] if question.scores else -inf


METRICS: Registry[Metric] = Registry("metric")
for _metric in (
    Metric("recall", "the part of the relevant documents that is among the first k", _ranked(metrics.recall_at_k)),
    Metric(
        "recall_all",
        "the part of the questions whose relevant documents are all among the first k",
        _ranked(metrics.recall_all_at_k),
    ),
    Metric("precision", "the part of the first k that is relevant", _ranked(metrics.precision_at_k)),
    Metric(
        "success", "the part of the questions with a relevant document among the first k", _ranked(metrics.success_at_k)
    ),
    Metric(
        "ndcg", "normalised discounted cumulative gain of the first k, binary gains", _ranked(metrics.ndcg_at_k)
    ),
    Metric(
        "mrr",
        "the mean of 1 / rank of the first relevant document",
        lambda question, _: metrics.reciprocal_rank(question.retrieved, question.relevant),
        is_cut=False,
    ),
    Metric(
        "macro_recall", "recall, as the mean over the means of the categories", _ranked(metrics.recall_at_k),
        by_category=True,
    ),
    Metric(
        "macro_ndcg", "ndcg, as the mean over the means of the categories", _ranked(metrics.ndcg_at_k),
        by_category=True,
    ),
    Metric(
        "stale_share",
        "the part of the questions with outdated documents where one of those ranks above every relevant one; "
        "if neither is found, it does not",
        lambda question, _: metrics.is_stale_first(question.retrieved, question.relevant, question.stale),
        is_cut=False,
        counts=lambda question: bool(question.relevant and question.stale),
        less_is_better=True,
    ),
    Metric(
        "context_tokens",
        "the mean number of tokens that came back for a question, at a token for four characters",
        lambda question, _: float(question.tokens or 0),
        is_cut=False,
        counts=lambda question: question.tokens is not None,
        less_is_better=True,
    ),
    Metric(
        "abstention",
        "the part of the questions without an answer for which nothing came back",
        lambda question, _: float(not question.retrieved),
        is_cut=False,
        counts=lambda question: not question.relevant,
    ),
    Metric(
        "abstention_accuracy",
        "the mean of two shares, answered where there is an answer and silent where there is none, when a memory keeps "
        "quiet below a score, or what it explains as `answerable`, that one half of the questions chooses for the "
        "other, both ways; .5 is chance",
        lambda question, _: float(not question.retrieved),
        is_cut=False,
        together=threshold_accuracy_of,
    ),
):  # fmt: skip
    METRICS.add(_metric)


def default_metrics(k: int, cuts: Sequence[int] = ()) -> tuple[str, ...]:
    """Return the metrics that are always reported for a task that looks at k results, and at `cuts` beside."""
    early = tuple(f"{name}@{_EARLY_CUT}" for name in _EARLY) if k > _EARLY_CUT else ()
    more = tuple(f"{name}@{cut}" for cut in cuts for name in BY_CUT)
    return (*early, *more, *(f"{one.name}@{k}" if one.is_cut else one.name for one in METRICS.values()))


def scores_of(record: RetrievalRecord, wanted: Sequence[str] = ()) -> tuple[Score, ...]:
    """Return all scores of a task; `wanted` names metrics beside those that are always reported.

    Categories that are kept apart have separate scores and are not part of the total. Questions that are not judged
    count nowhere. Totals, and recall at the task's own k by category, have intervals where the questions say which of
    them hang together.
    """
    names = dict.fromkeys((*default_metrics(record.k, record.cuts), *wanted))
    judged = [question for question in record.questions if question.judged]
    total = [question for question in judged if question.category not in record.apart]
    scores = [score for name in names if (score := _total(name, total, judged))]
    for category in sorted({question.category for question in judged if question.category is not None}):
        members = [question for question in judged if question.category == category]
        found = [score for name in names if (score := _of_category(name, members, category))]
        scores += [_with_interval(score, members) if score.metric == f"recall@{record.k}" else score for score in found]
    return tuple(replace(score, level=record.level) for score in scores)


def _of_category(name: str, members: Sequence[QuestionRecord], category: str) -> Score | None:
    metric = metric_of(name)
    values = _values(name, [question for question in members if metric.counts(question)])
    if not values or metric.by_category or metric.together:
        return None
    return Score(metric=name, value=metrics.mean(values), questions=len(values), category=category)


def _total(name: str, total: Sequence[QuestionRecord], judged: Sequence[QuestionRecord]) -> Score | None:
    metric = metric_of(name)
    if metric.together:
        found = metric.together(judged)
        return None if found is None else Score(metric=name, value=found, questions=len(judged))
    counted = [question for question in total if metric.counts(question)]
    strata = [question.category or "" for question in counted] if metric.by_category else [""] * len(counted)
    if not counted or (metric.by_category and len(set(strata)) < _SEVERAL):
        return None
    sample = _sample(name, counted, strata)
    score = Score(metric=name, value=stratified_mean(sample), questions=len(counted))
    return _resampled(score, sample) if any(question.cluster for question in counted) else score


def _with_interval(score: Score, members: Sequence[QuestionRecord]) -> Score:
    counted = [question for question in members if metric_of(score.metric).counts(question)]
    if not any(question.cluster for question in counted):
        return score
    return _resampled(score, _sample(score.metric, counted, [""] * len(counted)))


def _sample(name: str, counted: Sequence[QuestionRecord], strata: Sequence[str]) -> Sample:
    return Sample(
        values=_values(name, counted),
        clusters=[question.cluster or question.id for question in counted],
        strata=strata,
    )


def _resampled(score: Score, sample: Sample) -> Score:
    interval = cluster_bootstrap(sample, seed=_SEED)
    return replace(score, low=interval.low, high=interval.high)


def is_metric(name: str) -> bool:
    """Whether this version has a metric of this name, with its k where it takes one; a file may say anything."""
    word, at, k = name.partition("@")
    return word in METRICS and METRICS[word].is_cut == bool(at) and (not at or _CUT.fullmatch(k) is not None)


def metric_of(name: str) -> Metric:
    """Return the metric that a name with or without its k, such as `recall@5`, speaks of."""
    return METRICS[name.partition("@")[0]]


def value_of(name: str, question: QuestionRecord) -> float:
    """Return one metric of one question."""
    (value,) = _values(name, [question])
    return value


def _values(name: str, questions: Sequence[QuestionRecord]) -> list[float]:
    value, k = metric_of(name).value, int(name.partition("@")[2] or 0)
    return [value(question, k) for question in questions]


def warnings_of(record: RetrievalRecord) -> Iterator[str]:
    """Yield what makes the numbers of a task less than they seem."""
    if record.smallest and record.k > _LARGE_SHARE * record.smallest:
        yield (
            f"k={record.k} is {record.k / record.smallest:.0%} of the smallest collection, which has {record.smallest} "
            "documents: high recall says little there"
        )
    if record.refused:
        yield (
            f"{len(record.refused)} of {record.documents} documents were refused and count as missed where they are "
            f"gold: {record.refused[0]} …"
        )
    if record.unusable:
        yield f"{len(record.unusable)} gold labels could not be read and are left out: {record.unusable[0]} …"
