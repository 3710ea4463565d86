"""Scores of a retrieval task: means over its judged questions, in total, by category, and apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from memstory.results.outcomes import Score
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.scoring import metrics

_LARGE_SHARE = 0.1
_EARLY_CUT = 5
_AT_K: Mapping[str, Callable[[Sequence[str], Sequence[str], int], float]] = {
    "recall": metrics.recall_at_k,
    "recall_all": metrics.recall_all_at_k,
    "precision": metrics.precision_at_k,
    "success": metrics.success_at_k,
    "ndcg": metrics.ndcg_at_k,
}


def default_metrics(k: int) -> tuple[str, ...]:
    """Return the metrics that are always reported for a task that looks at k results."""
    early = (f"recall@{_EARLY_CUT}",) if k > _EARLY_CUT else ()
    return (*early, f"recall@{k}", f"recall_all@{k}", f"precision@{k}", f"success@{k}", f"ndcg@{k}", "mrr")


def scores_of(record: RetrievalRecord, wanted: Sequence[str] = ()) -> tuple[Score, ...]:
    """Return all scores of a task; `wanted` names metrics beside those that are always reported.

    Categories that stand apart have scores of their own and are no part of the total. Questions that are not judged
    count nowhere; those without a relevant document are scored by `abstention` alone.
    """
    names = dict.fromkeys((*default_metrics(record.k), *(name for name in wanted if name != "abstention")))
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
    answerable = [question for question in questions if question.relevant]
    for name in names if answerable else ():
        values = [value_of(name, question) for question in answerable]
        yield Score(metric=name, value=_mean(values), questions=len(values), category=category, level=record.level)
    unanswerable = [float(not question.retrieved) for question in questions if not question.relevant]
    if unanswerable:
        yield Score(metric="abstention", value=_mean(unanswerable), questions=len(unanswerable), category=category,
                    level=record.level)  # fmt: skip


def value_of(name: str, question: QuestionRecord) -> float:
    """Return one metric of one question that has relevant documents."""
    word, _, cut = name.partition("@")
    if word == "mrr":
        return metrics.reciprocal_rank(question.retrieved, question.relevant)
    return _AT_K[word](question.retrieved, question.relevant, int(cut))


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
