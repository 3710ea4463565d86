"""What reports need from the steps of a trial, so that results.json can omit the steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memstory.contract.codec import decode
from memstory.contract.target import ToolCall, Turn
from memstory.results.outcomes import AgentStep, CaseResult, StepTime, TrialResult
from memstory.results.recording import StepRecord

_JUDGED_WELL = ("passed", "measured", "unsupported")


def without_steps(case: CaseResult) -> CaseResult:
    """Return `case` with an extract of its steps instead of steps and tools."""
    trials = (
        replace(trial, recording=replace(trial.recording, steps=(), tools=())) for trial in with_extract(case).trials
    )
    return replace(case, trials=tuple(trials))


def with_extract(case: CaseResult) -> CaseResult:
    """Return `case` with an extract of its steps beside them."""
    return replace(case, trials=tuple(_extract(trial) for trial in case.trials))


def _extract(trial: TrialResult) -> TrialResult:
    recording = trial.recording
    if not recording.steps:
        return trial
    times = (
        StepTime(
            path=step.path,
            op=step.op,
            seconds=step.seconds,
            embedding_seconds=step.embedding_seconds,
            model=step.model,
        )
        for step in recording.steps
    )
    agent = () if trial.outcome in _JUDGED_WELL else _agent_steps(recording.steps)
    return replace(trial, times=tuple(times), agent=tuple(agent))


def _agent_steps(steps: Iterable[StepRecord]) -> Iterator[AgentStep]:
    for step in steps:
        if step.op == "say" and isinstance(step.result, dict):
            yield AgentStep(path=step.path, said=step.args.get("text", ""), turn=decode(Turn, step.result))
        elif step.op == "tool" and isinstance(step.result, dict):
            yield AgentStep(path=step.path, turn=Turn(answer="", tool_calls=(decode(ToolCall, step.result),)))
