"""Verdicts on the scores of a retrieval story, at every level of its perturbation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memstory.contract.target import Tree
from memstory.language.matchers import Context, judge
from memstory.language.story import Expectation, Matcher, Story
from memstory.results.outcomes import Score, Verdict
from memstory.results.recording import Recording, RetrievalRecord
from memstory.results.runs import counted
from memstory.tasks.perturbation import level_name


def wanted_metrics(story: Story) -> tuple[str, ...]:
    """Return the metrics that the story has expectations on."""
    return tuple(dict.fromkeys(name for expected in story.expect for name in _groups(expected)))


def _groups(expected: Expectation) -> Mapping[str, Sequence[Matcher]]:
    groups: Mapping[str, Any] = expected.matchers[0].argument if expected.field == "metrics" else {}
    return groups


def score_verdicts(story: Story, recording: Recording, scores: Sequence[Score]) -> tuple[Verdict, ...]:
    """Judge the totals of every task that was recorded; categories are reported, not judged."""
    wanted = (
        verdict
        for task in recording.retrieval
        for expected in story.expect
        for verdict in _of_task(task, expected, scores)
    )
    return (*wanted, *(verdict for task in recording.retrieval for verdict in _surplus(story, task)))


def _surplus(story: Story, task: RetrievalRecord) -> Iterator[Verdict]:
    found = [question.surplus for question in task.questions if question.surplus]
    if found:
        reason = f"{len(found)} of {len(task.questions)} searches gave more than k = {task.k}, up to {max(found)} more"
        yield Verdict(passed=False, field="retrieval", check="limit", where=str(story.mark), reason=reason)


def _of_task(task: RetrievalRecord, expected: Expectation, scores: Sequence[Score]) -> Iterator[Verdict]:
    level = f" at {level_name(task.level)}" if task.level else ""
    if expected.field == "latency_ms":
        seconds = [question.seconds for question in task.questions]
        value = 1000 * sum(seconds) / len(seconds) if seconds else None
        yield from (_verdict("latency_ms", f"latency_ms{level}", value, matcher) for matcher in expected.matchers)
    totals = {score.metric: score for score in scores if score.category is None and score.level == task.level}
    for name, group in _groups(expected).items():
        total = totals.get(name)
        for matcher in group:
            if total is None:
                yield Verdict(passed=False, field="metrics", check=name, where=str(matcher.mark),
                              reason=f"{name}{level} could not be measured: no question calls for it")  # fmt: skip
            else:
                subject = f"{name}{level} over {counted(total.questions, 'question')}"
                yield _verdict(name, subject, round(total.value, 6), matcher)


def _verdict(check: str, subject: str, value: Tree, matcher: Matcher) -> Verdict:
    found = judge("metrics", value, matcher, Context())
    return Verdict(passed=found.holds, field="metrics", check=check, where=str(matcher.mark),
                   reason=f"{subject} {found.says}", expected=found.expected, actual=found.actual)  # fmt: skip
