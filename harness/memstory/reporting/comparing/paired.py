"""Two memories on the same questions: the difference of each metric with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from memstory.language.matchers.means import value_of
from memstory.reporting.views import ABSTENTION
from memstory.results.outcomes import CaseResult
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.scoring.metrics import mean
from memstory.scoring.statistics import Interval, paired_bootstrap
from memstory.tasks.perturbation import level_name

SEED: Final = 1
"""Of the resampling: the same two runs give the same interval."""

_COMPARED: Final = ("recall@", "ndcg@", "mrr", ABSTENTION)

Place: TypeAlias = tuple[str, str]
"""Name of the task and its level in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much higher a metric is on `questions` that both were asked; the interval is of 95%."""

    task: str
    level: str
    metric: str
    questions: int
    value: float
    low: float
    high: float

    @property
    def is_higher(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0

    @property
    def is_lower(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.high < 0


def differences(before: CaseResult, after: CaseResult) -> list[Difference]:
    """Return for each task, level and metric of two cases of one story how `after` differs from `before`."""
    metrics = [name for name in metrics_of(before) if name in metrics_of(after)]
    old, new = _values(before, metrics), _values(after, metrics)
    found = []
    for (place, metric), earlier in old.items():
        later = new.get((place, metric), {})
        shared = [question for question in earlier if question in later]
        if shared:
            interval = _interval([earlier[one] for one in shared], [later[one] for one in shared])
            task, level = place
            found.append(
                Difference(
                    task=task,
                    level=level,
                    metric=metric,
                    questions=len(shared),
                    value=interval.value,
                    low=interval.low,
                    high=interval.high,
                )
            )
    return found


def metrics_of(case: CaseResult) -> list[str]:
    """Return the metrics to compare a case by; those left out say the same once more."""
    names = dict.fromkeys(score.metric for score in case.scores if score.category is None)
    return [name for name in names if name.startswith(_COMPARED)]


def _interval(before: list[float], after: list[float]) -> Interval:
    if before == after:
        return Interval(value=0.0, low=0.0, high=0.0)
    return paired_bootstrap(before, after, seed=SEED)


def _values(case: CaseResult, metrics: list[str]) -> Mapping[tuple[Place, str], Mapping[tuple[str, int], float]]:
    """Return each metric of each question, as its mean over the trials; what stands apart is no part of a total."""
    gathered: dict[tuple[Place, str], dict[tuple[str, int], list[float]]] = {}
    for trial in case.trials:
        for record in trial.recording.retrieval:
            place = record.name, level_name(record.level)
            for question, asked in _questions(record):
                for metric in metrics:
                    if (metric == ABSTENTION) == (not asked.relevant):
                        value = float(not asked.retrieved) if metric == ABSTENTION else value_of(metric, asked)
                        gathered.setdefault((place, metric), {}).setdefault(question, []).append(value)
    return {key: {one: mean(values) for one, values in asked.items()} for key, asked in gathered.items()}


def _questions(record: RetrievalRecord) -> Iterator[tuple[tuple[str, int], QuestionRecord]]:
    """Yield the questions that count; collections of one task may use the same id twice, so the place counts too."""
    seen: dict[str, int] = {}
    for asked in record.questions:
        number = seen[asked.id] = seen.get(asked.id, 0) + 1
        if asked.judged and asked.category not in record.apart:
            yield (asked.id, number), asked
