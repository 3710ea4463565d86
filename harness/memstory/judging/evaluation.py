"""Recording -> CaseResult: every expectation judged, with its reason. Pure: nothing is run and nothing is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from memstory.case import Case
from memstory.judging.stand_in import UNUSED, is_unused
from memstory.judging.verdicts import StepPlace, locate, score_verdicts, step_verdicts, wanted_metrics
from memstory.language.matchers.means import scores_of, warnings_of
from memstory.language.story import Story
from memstory.results.outcomes import KEPT_NOTHING, WORST_FIRST, CaseResult, Outcome, Score, TrialResult, Verdict
from memstory.results.recording import Failure, FailureKind, Recording, StepRecord
from memstory.results.totals import with_totals

_BROKE_OFF: Final[Mapping[FailureKind, str]] = {
    "invalid": "then the story could not go on",
    "error": "then the target broke off",
    "unsupported": "then the target could not go on",
}
_BESIDE: Final[Mapping[Outcome, str]] = {"invalid": "invalid", "error": "broke", "unsupported": "unsupported"}
"""Trials that neither passed nor failed, in words."""


def evaluate(case: Case, recordings: Sequence[Recording]) -> CaseResult:
    """Judge all trials of a case."""
    story = case.story
    trials = tuple(judge_trial(story, recording) for recording in recordings)
    outcome, reason = _together(trials, story)
    result = CaseResult(
        id=case.id,
        story=story.id,
        title=story.title,
        target=case.target,
        where=str(story.mark),
        digest=story.digest,
        outcome=outcome,
        reason=reason,
        trials=trials,
        tags=story.tags,
        covers=story.covers,
        needs=tuple(sorted(story.needs)),
        options=story.options,
        row=story.row,
        harm=story.harm,
        slug=story.slug,
        precondition=story.precondition,
        control=story.control,
        control_because=story.control_because,
        seconds=sum(recording.seconds for recording in recordings),
    )
    return with_totals(result)


def judge_trial(story: Story, recording: Recording) -> TrialResult:
    """Judge one recording of a story."""
    scores = tuple(score for task in recording.retrieval for score in scores_of(task, wanted_metrics(story)))
    verdicts = (*step_verdicts(story, recording), *score_verdicts(story, recording, scores))
    outcome, reason = _outcome(story, recording, verdicts, scores)
    warnings = (
        *(warning for task in recording.retrieval for warning in warnings_of(task)),
        *(_kept_nothing(story, step) for step in recording.steps if _is_silent_loss(story, step)),
        *map(_one_line, recording.left),
    )
    return TrialResult(
        outcome=outcome, reason=reason, verdicts=verdicts, scores=scores, recording=recording, warnings=warnings
    )


def _is_silent_loss(story: Story, step: StepRecord) -> bool:
    """Say whether a memory asked its model, kept nothing, and the story expects nothing of that."""
    items = step.result.get("items") if step.op == "add" and isinstance(step.result, dict) else None
    dropped = bool(items) and all(item.get("outcome") == "dropped" for item in items or ())
    place = locate(story, step.path) if dropped and step.model else None
    return place is not None and not place.step.expect


def _kept_nothing(story: Story, step: StepRecord) -> str:
    reason = step.result["items"][0].get("reason")
    return _one_line(f"{_place(story, locate(story, step.path))}: {KEPT_NOTHING}; {reason}")


def _outcome(
    story: Story, recording: Recording, verdicts: Sequence[Verdict], scores: Sequence[Score]
) -> tuple[Outcome, str | None]:
    failure = recording.failure
    # What a model said of an answer is shown apart; it decides no case.
    judged = [verdict for verdict in verdicts if verdict.kind == "judged"]
    verdicts = [verdict for verdict in verdicts if verdict.kind != "judged"]
    failing = [verdict for verdict in verdicts if not verdict.passed]
    if failing and not story.measure:
        # What was seen counts, however the case went on.
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        said = verdict_line(story, failing[0]) + more + _then(story, failure)
        excuses = [_excuse(story, recording, verdict) for verdict in failing]
        return ("error", f"{excuses[0]}: {said}") if all(excuses) else ("failed", said)
    is_measured = bool(story.measure and (scores or verdicts))
    if failure is not None and not (is_measured and failure.kind == "failed"):
        return failure.kind, _failure_reason(story, failure)
    if is_measured:
        return "measured", _summary(verdicts, failing)
    if story.retrieval is not None and not scores:
        return "error", f"{story.mark} retrieval: no question could be measured"
    return _by_judge(judged) if judged and not verdicts else ("passed", None)


def _excuse(story: Story, recording: Recording, verdict: Verdict) -> str | None:
    """Return what else than the memory explains a failure: the stand-in that talks, or a machine that is too slow."""
    return UNUSED if is_unused(story, recording, verdict) else _outlasted_ttl(recording, verdict)


def _outlasted_ttl(recording: Recording, verdict: Verdict) -> str | None:
    """Return that a time to live was over before a step had ended which the story places within it; None if not so."""
    steps = recording.steps
    place = next((n for n, one in enumerate(steps) if tuple(one.path) == tuple(verdict.step)), 0)
    for start, record in enumerate(steps[:place]):
        items = [item for item in record.args.get("items") or () if isinstance(item, Mapping)]
        for ttl in (float(item["ttl"]) for item in items if item.get("ttl")):
            begun, asked = (datetime.fromisoformat(one.at) for one in (record, steps[place]))
            taken = sum(one.seconds for one in steps[start : place + 1])
            if (asked - begun).total_seconds() < ttl <= taken:
                return f"too slow a machine, run it again: {taken:.1f} s of a ttl of {ttl:g} s had passed"
    return None


def _by_judge(judged: Sequence[Verdict]) -> tuple[Outcome, str]:
    return "measured", f"judged: {sum(one.passed for one in judged)} of {len(judged)} answers fit"


def _summary(verdicts: Sequence[Verdict], failing: Sequence[Verdict]) -> str | None:
    return f"{len(verdicts) - len(failing)} of {len(verdicts)} expectations held" if verdicts else None


def verdict_line(story: Story, verdict: Verdict) -> str:
    """Return a verdict as one line: its place in the story, its step, and why."""
    step = locate(story, verdict.step) if verdict.step else None
    place = f" {step.label}" if step else ""
    return _one_line(f"{verdict.where}{place}: {verdict.reason}")


def _then(story: Story, failure: Failure | None) -> str:
    if failure is None or failure.kind not in _BROKE_OFF:
        return ""
    step = locate(story, failure.step) if failure.step else None
    return _one_line(f"; {_BROKE_OFF[failure.kind]}: {f'{step.label}: ' if step else ''}{failure.message}")


def _failure_reason(story: Story, failure: Failure) -> str:
    step = locate(story, failure.step) if failure.step else None
    if failure.kind == "unsupported" and step is None:
        return _one_line(failure.message)
    if failure.kind == "invalid" and failure.message.startswith(f"{story.mark.file}:"):
        # What is wrong in a story may know its own line, which is nearer than that of the story.
        return _one_line(failure.message)
    return _one_line(f"{_place(story, step)}: {failure.message}")


def _place(story: Story, step: StepPlace | None) -> str:
    return f"{step.step.mark} {step.label}" if step else str(story.mark)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _together(trials: Sequence[TrialResult], story: Story) -> tuple[Outcome, str | None]:
    """Aggregate: enough trials that pass make the case pass, else its worst trial says how it ended.

    Trials that broke may be among those that are not needed. What is wrong with the story, or with the target's
    abilities, is the same in every trial, so that no number of others makes up for it.
    """
    if not trials:
        return "error", "nothing was recorded"
    worst = min(trials, key=lambda trial: WORST_FIRST.index(trial.outcome))
    if story.measure or len(trials) == 1 or worst.outcome not in {"failed", "error"}:
        return worst.outcome, worst.reason
    count = Counter(trial.outcome for trial in trials)
    at_least = min(story.trials.at_least, len(trials))
    said = f"{count['passed']} of {len(trials)} trials passed, {at_least} needed"
    said += "".join(f", {count[one]} {word}" for one, word in _BESIDE.items() if count[one])
    said += f"; first miss: {worst.reason}"
    if count["passed"] >= at_least and not (count["invalid"] or count["unsupported"]):
        return "passed", f"flaky: {said}"
    return worst.outcome, said
