"""A recording and today's story -> how it is judged now, or why it cannot be: pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from memstory.case import Case
from memstory.contract.errors import MissingValue, StoryError
from memstory.judging.evaluation import evaluate
from memstory.judging.verdicts import locate
from memstory.language.references import REFERENCE, substitute
from memstory.language.story import Step, Story
from memstory.reporting.sections.columns import step_number
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.recording import Recording, StepRecord
from memstory.results.redaction import redaction_notice
from memstory.results.runs import quantity
from memstory.results.totals import run_again
from memstory.running.stage import owner_of
from memstory.tasks.perturbation import levels_of, with_labels

Judged = Outcome | Literal["cannot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudgement:
    """One case: how it was judged and how it is now, with the reason; `cannot` where the recording does not fit."""

    id: str
    was: Outcome
    now: Judged
    reason: str | None
    story_changed: bool

    @property
    def has_flipped(self) -> bool:
        """Whether it is judged otherwise now, or cannot be judged any more."""
        return self.now != self.was


def rejudge_case(recorded: CaseResult, story: Story | None) -> Rejudgement:
    """Judge `recorded` by `story`, which is None where no file has it any more."""
    if story is None:
        return _cannot(recorded, f"the story {recorded.story} is in none of the files")
    if recorded.redacted:
        notice = redaction_notice(recorded.redacted)
        return _cannot(recorded, f"{notice} were redacted from its recording: run it again")
    changed = story.digest != recorded.digest
    if changed and (difference := _does_other_things(story, recorded)):
        return _cannot(recorded, f"{difference}: run it again")
    result = reduce(run_again, (_judge(story, recorded.target, run) for run in _runs(recorded)))
    return Rejudgement(
        id=recorded.id, was=recorded.outcome, now=result.outcome, reason=result.reason, story_changed=changed
    )


def _runs(recorded: CaseResult) -> Sequence[Sequence[Recording]]:
    """Return the recordings of each time that the case was run: usually once, more often where it was run again."""
    runs: list[list[Recording]] = [[]]
    for recording in (trial.recording for trial in recorded.trials):
        if runs[-1] and recording.trial <= runs[-1][-1].trial:
            runs.append([])
        runs[-1].append(recording)
    return runs


def _judge(story: Story, target: str, recordings: Sequence[Recording]) -> CaseResult:
    # As many trials as were recorded, as a run with `--trials` does.
    story = replace(story, trials=story.trials.times(len(recordings)))
    return evaluate(Case(story=story, target=target), recordings)


def _cannot(recorded: CaseResult, reason: str) -> Rejudgement:
    return Rejudgement(id=recorded.id, was=recorded.outcome, now="cannot", reason=reason, story_changed=True)


def _does_other_things(story: Story, recorded: CaseResult) -> str | None:
    """Return in what the story does something else now than was recorded; what it expects may differ."""
    if dict(story.options) != dict(recorded.options):
        return "the story's options changed since"
    for trial in recorded.trials:
        if difference := _other_steps(story, trial.recording) or _other_data(story, trial.recording):
            return difference
    return None


def _other_steps(story: Story, recording: Recording) -> str | None:
    owner = owner_of(story.id, recording.seed)
    last_index = recording.steps[-1].path[0] + 1 if recording.steps else 0
    if recording.failure is None and len(story.steps) != last_index:
        return f"{quantity(last_index, 'step')} recorded, and the story has {len(story.steps)} now"
    for record in recording.steps:
        place = locate(story, record.path)
        if place is None:
            return f"step {step_number(record.path)} is gone"
        is_same = place.step.op == record.op and _is_of_same(place.step, record, owner)
        if not is_same or _other_arguments(place.step, record):
            return f"{place.label} is not what was recorded"
    return None


def _is_of_same(step: Step, record: StepRecord, owner: str) -> bool:
    """Return whether the step has the user and the session that were recorded, as far as it names them."""
    user, session = step.user, step.session
    if "${" in f"{user}{session}":
        return True
    users = {owner} if user is None else {user, f"{owner}.{user}"}
    return record.user in users and session in (None, record.session)


def _other_arguments(step: Step, record: StepRecord) -> bool:
    if set(REFERENCE.findall(json.dumps(step.args))) & step.save.keys():
        # The names of the record are those after the step, which has just changed what its own argument stood for.
        return False
    try:
        return bool(_plain(substitute(step.args, record.names)) != _plain(record.args))
    except (MissingValue, StoryError):
        # A name that the step needs was not saved then: whatever it would have stood for, this is another step.
        return True


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _other_data(story: Story, recording: Recording) -> str | None:
    if recording.failure is not None:
        return None
    if bool(story.retrieval) != bool(recording.retrieval):
        return "the story was about something else"
    if story.retrieval is None:
        return None
    asked = {(record.k, tuple(record.cuts)) for record in recording.retrieval}
    if asked != {(story.retrieval.k, tuple(story.retrieval.cuts))}:
        return "'k' changed since"
    levels = [dict(record.level) for record in recording.retrieval]
    wanted = with_labels(levels_of(story.perturb), story.retrieval.labels)
    return None if levels == [dict(level) for level in wanted] else "the perturbations changed since"
