"""The differences between two runs of one target, in words: each case, part by part, without times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memstory.contract.codec import encode
from memstory.contract.target import Tree
from memstory.language.matchers.check import difference
from memstory.reporting.comparing.columns import Column
from memstory.reporting.views import step_number
from memstory.results.outcomes import CaseResult
from memstory.results.recording import QuestionRecord
from memstory.results.runs import natural
from memstory.tasks.perturbation import level_name

_LEFT_OUT = frozenset({"seconds", "embedding_seconds", "names"})


def differences_in_words(before: Column, after: Column) -> list[str]:
    """Return a line for each part of a case that differs, and one for each story that only one of both has.

    A baseline has no steps, and of found documents the places only: then that is all that is compared.
    """
    stories = sorted({*before.cases, *after.cases}, key=natural)
    return [line for story in stories for line in _of_story(story, before, after)]


def _of_story(story: str, before: Column, after: Column) -> Iterator[str]:
    if story not in before.cases or story not in after.cases:
        yield f"{story}: only in {before.title if story in before.cases else after.title}"
        return
    was, now = before.cases[story], after.cases[story]
    with_steps, with_ids = _has_steps(was) and _has_steps(now), _has_ids(was) and _has_ids(now)
    old, new = (_parts(case, with_steps=with_steps, with_ids=with_ids) for case in (was, now))
    for part in [*old, *(part for part in new if part not in old)]:
        if part not in old or part not in new:
            yield f"{story}, {part}: only in {before.title if part in old else after.title}"
        elif old[part] != new[part]:
            yield f"{story}, {part}:\n{_in_words(old[part], new[part])}"


def _parts(case: CaseResult, *, with_steps: bool, with_ids: bool) -> Mapping[str, Tree]:
    """Return the parts of a case by a name for people."""
    told = {"outcome": case.outcome, "reason": case.reason, "metrics": case.metrics, "warnings": case.warnings}
    parts: dict[str, Tree] = {"outcome": encode(told)}
    for trial in case.trials:
        where = f"trial {trial.recording.trial + 1}, " if len(case.trials) > 1 else ""
        for step in trial.recording.steps if with_steps else ():
            said = {name: value for name, value in encode(step).items() if name not in _LEFT_OUT}
            parts[f"{where}step {step_number(step.path)} ({step.op})"] = said
        for record in trial.recording.retrieval:
            at = f" at {level_name(record.level)}" if record.level else ""
            for number, asked in enumerate(record.questions, 1):
                parts[f"{where}question {number}, {asked.id}{at}"] = _found(asked, with_ids=with_ids)
    return parts


def _found(asked: QuestionRecord, *, with_ids: bool) -> Tree:
    return encode({"retrieved": asked.retrieved, "scores": asked.scores} if with_ids else {"gold at": asked.places})


def _has_steps(case: CaseResult) -> bool:
    return any(trial.recording.steps for trial in case.trials)


def _has_ids(case: CaseResult) -> bool:
    return all(asked.ranks is None for record in case.retrieval for asked in record.questions)


def _in_words(old: Tree, new: Tree) -> str:
    text = difference(old, new) or "too large to show; 'memstory show' has both"
    return "\n".join(f"  {line}" for line in text.splitlines())
