"""A run reduced to what later runs are compared with, small enough for git, and its expansion for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memstory.results.outcomes import CaseResult, TrialResult
from memstory.results.recording import QuestionRecord
from memstory.results.runs import Run, make_run


def as_baseline(run: Run) -> Run:
    """Return `run` without steps, verdicts, tracebacks and times: outcomes, scores and the ranks of gold stay.

    What stories and memories said goes with the steps; a reason for failing may still quote them.
    """
    fingerprint = replace(run.fingerprint, started=None)
    return replace(run, fingerprint=fingerprint, cases=tuple(map(_slim, run.cases)))


def joint_baseline(runs: Sequence[Run]) -> Run:
    """Return the baseline of several runs of the same cases; it says of which targets all of them found the same.

    Each case is that of the run in which it ended worst: what fails now and then is not known to pass.
    """
    several = zip(*(run.cases for run in runs), strict=True)
    cases = [min(same, key=lambda case: (case.severity, not case.leaked)) for same in several]
    steady = {target: not varying for target, varying in varying_cases(runs).items()}
    joint = make_run(cases, runs[0].fingerprint)
    return as_baseline(replace(joint, redacted=runs[0].redacted, steady=steady))


def varying_cases(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return by target the cases in which not all runs found the same."""
    found: dict[str, list[str]] = {}
    for first, *others in zip(*(run.cases for run in runs), strict=True):
        varying = found.setdefault(first.target, [])
        if any(_found(case) != _found(first) for case in others):
            varying.append(first.id)
    return found


def _found(case: CaseResult) -> object:
    """Return what a memory that does the same finds again: no times, no generated ids, no words."""
    questions = (asked for trial in case.trials for record in trial.recording.retrieval for asked in record.questions)
    places = [(asked.id, tuple(asked.places)) for asked in questions]
    return case.id, case.outcome, [trial.outcome for trial in case.trials], places, case.metrics


def with_ids(run: Run) -> Run:
    """Return `run` with ids for the gold that a baseline has by rank only: every metric is what it was."""
    return replace(run, cases=tuple(_case_with_ids(case) if case.retrieval else case for case in run.cases))


def _slim(case: CaseResult) -> CaseResult:
    return replace(case, seconds=0.0, trials=tuple(map(_slim_trial, case.trials)))


def _slim_trial(trial: TrialResult) -> TrialResult:
    recording, failure = trial.recording, trial.recording.failure
    recording = replace(
        recording,
        steps=(),
        tools=(),
        seconds=0.0,
        # A traceback names folders of the machine that it comes from.
        failure=failure and replace(failure, detail=None),
        retrieval=tuple(
            replace(
                task, seconds=0.0, embedding_seconds=None, model=None, questions=tuple(map(_by_rank, task.questions))
            )
            for task in recording.retrieval
        ),
    )
    return replace(trial, recording=recording, verdicts=(), scores=(), times=(), agent=())


def _by_rank(question: QuestionRecord) -> QuestionRecord:
    slim = replace(question, scores=(), seconds=0.0, embedding_seconds=None, model=None, ranks=question.places)
    # Where outdated documents count, so does what came before them.
    return replace(slim, relevant=(), retrieved=()) if question.is_answered and not question.stale else slim


def _case_with_ids(case: CaseResult) -> CaseResult:
    trials = []
    for trial in case.trials:
        tasks = (replace(task, questions=tuple(map(_with_ids, task.questions))) for task in trial.recording.retrieval)
        trials.append(replace(trial, recording=replace(trial.recording, retrieval=tuple(tasks))))
    return replace(case, trials=tuple(trials))


def _with_ids(question: QuestionRecord) -> QuestionRecord:
    if not question.ranks or question.relevant:
        return question
    places = [f"place {place}" for place in range(1, max(question.ranks) + 1)]
    return replace(question, relevant=tuple(places[rank - 1] for rank in question.ranks), retrieved=tuple(places))
