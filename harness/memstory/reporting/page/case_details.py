"""A case as the page shows it on a click: plain JSON, shortened, without parts that nobody reads."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from memstory.contract.codec import encode_lean
from memstory.contract.target import Tree
from memstory.reporting.escaping import shorten, visible
from memstory.reporting.views import step_number
from memstory.results.outcomes import CaseResult, TrialResult
from memstory.results.recording import RetrievalRecord, StepRecord
from memstory.tasks.perturbation import level_name

TEXT_LIMIT: Final = 1_500
"""Characters of one text."""

LIST_LIMIT: Final = 30
"""Items of one list, such as the hits of a search."""

_MILLI: Final = 1000
_TIMES: Final = ("ms", "seconds", "model")
_EMPTY: Final[Sequence[Tree]] = (None, "", [], {})


def details(case: CaseResult) -> Mapping[str, Tree]:
    """Return what is shown of the trial that stands for `case`; empty fields are left out."""
    trial = case.deciding
    shown: dict[str, Any] = {
        "id": case.id,
        "outcome": case.outcome,
        "reason": case.reason,
        "seconds": round(case.seconds, 3),
        "options": dict(case.options),
        "warnings": list(case.warnings),
        "redacted": {name: count for name, count in case.redacted.items() if count},
    }
    if trial is not None:
        shown |= _of_trial(trial)
        shown["trial"] = f"trial {case.shown + 1} of {len(case.trials)}" if len(case.trials) > 1 else None
        shown["rate"] = str(case.rate) if case.rate else None
    shown["scores"] = [encode_lean(score) for score in case.scores if score.category is None]
    return {name: _trimmed(value) for name, value in shown.items() if value not in _EMPTY}


def without_times(shown: Mapping[str, Tree]) -> Tree:
    """Return details that are equal for two runs that did the same."""
    return _without_times(dict(shown))


def packed(tree: Tree) -> str:
    """Return JSON, deflated and in base64, as `DecompressionStream('deflate-raw')` of a browser reads it."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text) + packer.flush()).decode()


def _of_trial(trial: TrialResult) -> Mapping[str, Any]:
    recording = trial.recording
    shown: dict[str, Any] = {"about": dict(recording.about), "steps": list(_steps(trial))}
    shown["checks"] = [
        {"step": step_number(one.step), **{name: inner for name, inner in encode_lean(one).items() if name != "step"}}
        # What failed comes first: of many, only the first are shown.
        for one in sorted(trial.verdicts, key=lambda one: one.passed)
    ]
    if failure := recording.failure:
        shown["ended"] = {**encode_lean(failure), "step": step_number(failure.step)}
    shown["asked"] = [_asked(record) for record in recording.retrieval]
    return shown


def _steps(trial: TrialResult) -> Iterator[dict[str, Any]]:
    if trial.recording.steps:
        yield from map(_step, trial.recording.steps)
        return
    # Without recordings, results.json still has the times, and what an agent did where a trial did not pass.
    turns = {tuple(one.path): one for one in trial.agent}
    for time in trial.times:
        agent = turns.get(tuple(time.path))
        said = {"text": agent.said} if agent and agent.said is not None else {}
        result = encode_lean(agent.turn) if agent else None
        yield {"n": step_number(time.path), "op": time.op, "args": said, "result": result, "ms": _ms(time.seconds)}


def _step(step: StepRecord) -> dict[str, Any]:
    return {
        "n": step_number(step.path), "op": step.op, "user": step.user, "session": step.session, "at": step.at,
        "ms": _ms(step.seconds), "args": step.args, "error": step.error, "result": step.result,
        "model": str(step.model) if step.model else None,
    }  # fmt: skip


def _ms(seconds: float) -> float:
    return round(seconds * _MILLI, 1)


def _asked(record: RetrievalRecord) -> dict[str, Any]:
    """Return a retrieval task: its counts, and the questions that did not find all that they should."""
    judged = [asked for asked in record.questions if asked.judged]
    missed = [asked for asked in judged if not asked.is_answered]
    return {
        "name": record.name, "level": level_name(record.level), "documents": record.documents, "k": record.k,
        "questions": len(judged), "missed": len(missed),
        "examples": [
            {"id": asked.id, "category": asked.category, "wanted": asked.relevant, "got": asked.retrieved}
            for asked in missed[:LIST_LIMIT]
        ],
    }  # fmt: skip


def _trimmed(value: Any) -> Tree:
    if isinstance(value, str):
        return visible(shorten(value, TEXT_LIMIT))
    if isinstance(value, Mapping):
        return {visible(str(name)): made for name, inner in value.items() if (made := _trimmed(inner)) not in _EMPTY}
    if isinstance(value, Sequence):
        kept: list[Tree] = [_trimmed(inner) for inner in value[:LIST_LIMIT]]
        return kept if len(kept) == len(value) else [*kept, f"… and {len(value) - len(kept)} more"]
    return value


def _without_times(value: Tree) -> Tree:
    if isinstance(value, dict):
        return {name: _without_times(inner) for name, inner in value.items() if name not in _TIMES}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value
