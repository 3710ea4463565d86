"""What differs between two columns: each metric on the same questions with its interval, and each case in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import gt, lt
from typing import Final, TypeAlias

from memstory.contract.codec import encode
from memstory.contract.target import Tree
from memstory.language.matchers.check import structure_difference
from memstory.language.matchers.means import is_metric, metric_of, value_of
from memstory.reporting.sections.columns import Column, step_number
from memstory.results.outcomes import CaseResult
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.results.runs import natural
from memstory.scoring.metrics import mean
from memstory.scoring.statistics import Interval, paired_bootstrap
from memstory.tasks.perturbation import level_name

SEED: Final = 1
"""Of the resampling: the same two runs give the same interval."""

_COMPARED: Final = ("recall@", "recall_all@", "ndcg@", "mrr", "macro_", "stale_share", "context_tokens", "abstention")

_NOT_COMPARED: Final = frozenset({"seconds", "embedding_seconds", "names", "requests"})
"""Fields of a step that differ between any two runs."""

Place: TypeAlias = tuple[str, str]
"""Name of the task and its level in words."""

_Asked: TypeAlias = tuple[str, int]
"""A question's id, and which of that id it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much higher a metric is on `questions` that both were asked; it rose in some and fell in others."""

    task: str
    level: str
    metric: str
    questions: int
    value: float
    low: float
    high: float
    rose: int = 0
    fell: int = 0

    @property
    def worse_in(self) -> int:
        """In how many questions the metric is worse."""
        return self.rose if metric_of(self.metric).less_is_better else self.fell

    @property
    def better_in(self) -> int:
        """In how many questions the metric is better."""
        return self.rose + self.fell - self.worse_in

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is on the good side of 0."""
        return self.high < 0 if metric_of(self.metric).less_is_better else self.low > 0

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval is on the bad side of 0."""
        return self.low > 0 if metric_of(self.metric).less_is_better else self.high < 0


def differences(before: CaseResult, after: CaseResult, confidence: float = 0.95) -> list[Difference]:
    """Return for each task, level and metric of two cases of one story how `after` differs from `before`."""
    metrics = [name for name in metrics_of(before) if name in metrics_of(after)]
    old, new, clusters = _values(before, metrics), _values(after, metrics), _clusters(before)
    found = []
    for (place, metric), earlier in old.items():
        later = new.get((place, metric), {})
        shared = [question for question in earlier if question in later]
        if shared:
            was, now = [earlier[one] for one in shared], [later[one] for one in shared]
            interval = _interval(was, now, clusters, shared, confidence)
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
                    rose=sum(map(gt, now, was)),
                    fell=sum(map(lt, now, was)),
                )
            )
    return found


def lost_and_won(before: CaseResult, after: CaseResult) -> tuple[list[str], list[str]]:
    """Return the ids of questions whose gold was all found in `before` and is not in `after`, and the other way."""
    old, new = _answers(before), _answers(after)
    changed = [(one[1], was) for one, was in old.items() if one in new and new[one] != was]
    return [id_ for id_, was in changed if was], [id_ for id_, was in changed if not was]


def _answers(case: CaseResult) -> Mapping[tuple[Place, str, int], bool]:
    """Return which questions were answered in every trial."""
    found: dict[tuple[Place, str, int], bool] = {}
    for trial in case.trials:
        for record in trial.recording.retrieval:
            for (id_, number), asked in counted_questions(record):
                one = (record.name, level_name(record.level)), id_, number
                found[one] = found.get(one, True) and asked.is_answered
    return found


def metrics_of(case: CaseResult) -> list[str]:
    """Return the metrics to compare a case by; those left out say the same again, or are not a mean over questions."""
    names = dict.fromkeys(score.metric for score in case.scores if score.category is None)
    return [name for name in names if name.startswith(_COMPARED) and is_metric(name) and not metric_of(name).overall]


def _interval(
    before: list[float],
    after: list[float],
    clusters: Mapping[_Asked, str],
    questions: Sequence[_Asked],
    confidence: float,
) -> Interval:
    if before == after:
        return Interval(value=0.0, low=0.0, high=0.0)
    hanging = [clusters.get(one, f"{one}") for one in questions] if clusters else None
    return paired_bootstrap(before, after, seed=SEED, clusters=hanging, confidence=confidence)


def _clusters(case: CaseResult) -> Mapping[_Asked, str]:
    """Return which questions hang together, where they say so."""
    return {
        one: asked.cluster
        for record in case.retrieval
        for one, asked in counted_questions(record)
        if asked.cluster is not None
    }


def _values(case: CaseResult, metrics: list[str]) -> Mapping[tuple[Place, str], Mapping[_Asked, float]]:
    """Return each metric of each question, as its mean over the trials; what is kept apart is not part of a total."""
    gathered: dict[tuple[Place, str], dict[_Asked, list[float]]] = {}
    for trial in case.trials:
        for record in trial.recording.retrieval:
            place = record.name, level_name(record.level)
            for metric in metrics:
                values = gathered.setdefault((place, metric), {})
                for question, value in _weighted_values(metric, record):
                    values.setdefault(question, []).append(value)
    return {key: {one: mean(values) for one, values in asked.items()} for key, asked in gathered.items() if asked}


def _weighted_values(metric: str, record: RetrievalRecord) -> Iterator[tuple[_Asked, float]]:
    """Yield one metric of each question that counts; where categories weigh the same, so that the mean is theirs."""
    counted = [(one, asked) for one, asked in counted_questions(record) if metric_of(metric).applies_to(asked)]
    sizes = Counter(asked.category for _, asked in counted) if metric_of(metric).by_category else {}
    for one, asked in counted:
        weight = len(counted) / len(sizes) / sizes[asked.category] if sizes else 1.0
        yield one, weight * value_of(metric, asked)


def counted_questions(record: RetrievalRecord) -> Iterator[tuple[_Asked, QuestionRecord]]:
    """Yield the questions that count, each by its id and which of that id it is: collections may use one id twice."""
    seen: dict[str, int] = {}
    for asked in record.questions:
        number = seen[asked.id] = seen.get(asked.id, 0) + 1
        if asked.judged and asked.category not in record.apart:
            yield (asked.id, number), asked


def differences_in_words(before: Column, after: Column) -> list[str]:
    """Return a line for each part of a case that differs, and one for each story that only one of both has.

    Where one of the two has no steps, as a baseline has none, they are not compared.
    """
    stories = sorted({*before.cases, *after.cases}, key=natural)
    return [line for story in stories for line in _of_story(story, before, after)]


def _of_story(story: str, before: Column, after: Column) -> Iterator[str]:
    if story not in before.cases or story not in after.cases:
        yield f"{story}: only in {before.title if story in before.cases else after.title}"
        return
    was, now = before.cases[story], after.cases[story]
    both = was, now
    with_steps = all(any(trial.recording.steps for trial in case.trials) for case in both)
    old, new = (_parts(case, with_steps=with_steps) for case in both)
    for part in [*old, *(part for part in new if part not in old)]:
        if part not in old or part not in new:
            yield f"{story}, {part}: only in {before.title if part in old else after.title}"
        elif old[part] != new[part]:
            words = structure_difference(old[part], new[part]) or "too large to show; 'memstory show' has both"
            yield "\n  ".join([f"{story}, {part}:", *words.splitlines()])


def _parts(case: CaseResult, *, with_steps: bool) -> Mapping[str, Tree]:
    """Return the parts of a case by a name for people."""
    whole = {"outcome": case.outcome, "reason": case.reason, "metrics": case.metrics, "warnings": case.warnings}
    parts: dict[str, Tree] = {"outcome": encode(whole)}
    for trial in case.trials:
        where = f"trial {trial.recording.trial + 1}, " if len(case.trials) > 1 else ""
        for step in trial.recording.steps if with_steps else ():
            parts[f"{where}step {step_number(step.path)} ({step.op})"] = {
                name: value for name, value in encode(step).items() if name not in _NOT_COMPARED
            }
        for record in trial.recording.retrieval:
            at = f" at {level_name(record.level)}" if record.level else ""
            for number, asked in enumerate(record.questions, 1):
                parts[f"{where}question {number}, {asked.id}{at}"] = encode(
                    {"retrieved": asked.retrieved, "scores": asked.scores}
                )
    return parts
