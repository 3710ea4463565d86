"""The outcome of a case and the reasons for it: what reports are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memstory.results.recording import Recording
from memstory.target import Json

Outcome = Literal["passed", "failed", "unsupported", "error", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One matcher judged. `where` is `file:line:col` in the story; `step` is the path of the step that it speaks of.

    `expected` and `actual` are short texts for a person; `difference` is a DeepDiff in words where both are structures.
    """

    passed: bool
    field: str
    check: str
    where: str
    reason: str
    step: Sequence[int] = ()
    expected: str | None = None
    actual: str | None = None
    difference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A mean over judged questions; `category=None` is the total. `questions` is the denominator."""

    metric: str
    value: float
    questions: int
    category: str | None = None
    level: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One run of a case, judged."""

    outcome: Outcome
    reason: str | None
    verdicts: Sequence[Verdict]
    scores: Sequence[Score]
    recording: Recording
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case, judged over all its trials. `id` is `S5[topics]`; `where` is the story's place in its file.

    `needs` are the capabilities that the story asks of its target, sorted.
    `control` and `control_because` are the story's own words on which controls are meant to pass or fail it. `redacted`
    counts the `secrets` and `texts` that were taken out after the case was judged, before it was written anywhere.
    """

    id: str
    story: str
    title: str
    target: str
    where: str
    digest: str
    outcome: Outcome
    reason: str | None
    trials: Sequence[TrialResult]
    tags: Sequence[str] = ()
    covers: Sequence[str] = ()
    needs: Sequence[str] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    row: str | None = None
    seconds: float = 0.0
    control: Mapping[str, str] = field(default_factory=dict)
    control_because: str | None = None
    redacted: Mapping[str, int] = field(default_factory=dict)
