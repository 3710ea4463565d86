"""A judged case: its outcome, the reasons and its scores. Reports are made from these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from memstory.contract.target import ModelUse, Tree, Turn
from memstory.results.recording import Recording, RetrievalRecord

Outcome = Literal["passed", "failed", "measured", "unsupported", "exhausted", "error", "invalid"]
OUTCOMES: Final[Sequence[Outcome]] = get_args(Outcome)
Harm = Literal["leak", "loss", "wrong", "rank", "cosmetic"]
"""What a failure does to a user, the worst first; a story says it in `harm:`."""
HARMS: Final[Sequence[Harm]] = get_args(Harm)

WORST_FIRST: Final[Sequence[Outcome]] = (
    "failed", "invalid", "error", "exhausted", "unsupported", "measured", "passed",
)  # fmt: skip
"""Which outcome counts where there are several: what was seen before what kept it from being seen.

A wrong story comes before a broken target, for until it is mended no run says more; what was measured before what
passed, for nothing was asked of it.
"""
WRONG: Final[frozenset[Outcome]] = frozenset({"failed", "invalid", "error"})
"""Outcomes that somebody has to act on."""

KEPT_NOTHING: Final = "nothing was kept of it"
"""In the warning of an `add` of which a memory kept nothing, after it had asked its model."""

OF_ANOTHER: Final = "owner"
"""The `check` of a verdict on hits that hold what another user stored: a leak, whatever the story looks for."""

NO_HITS: Final = "no hits"
"""The `kind` of a failed verdict on hits that were none at all: a memory that returns nothing leaks nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One matcher judged. `where` is `file:line:col` in the story; `step` is the path of the step that it speaks of.

    `expected` and `actual` are short texts for a person; `difference` is a DeepDiff in words where both are structures.
    `kind` is one of a few words for what was found, such as `stale first`.
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
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A mean over judged questions; `category=None` is the total. `questions` is the denominator.

    `low` and `high` are the interval of 95%, where it was taken.
    """

    metric: str
    value: float
    questions: int
    category: str | None = None
    level: Mapping[str, Tree] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """How long a step took; `embedding_seconds` is the part in which the memory waited for its embedder, if known.

    `model` is what a language model was asked because of it, `requests` what a server was sent, where a trial did not
    pass.
    """

    path: Sequence[int]
    op: str
    seconds: float
    embedding_seconds: float | None = None
    model: ModelUse | None = None
    requests: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep:
    """What an agent did in a step, for reports: its answer to `said`, or without that one tool that was called."""

    path: Sequence[int]
    turn: Turn
    said: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often a case passed that ran several times, over the trials that could be judged.

    `low` and `high` are Wilson's interval of 95%; `pass_at` and `pass_hat` are pass@k and pass^k for k = 1, 2, …
    """

    passed: int
    trials: int
    low: float
    high: float
    flaky: bool
    pass_at: Sequence[float]
    pass_hat: Sequence[float]

    def __str__(self) -> str:
        every = f"pass^{self.trials} {self.pass_hat[-1]:.2f}"
        return f"passed {self.passed} of {self.trials} trials (95% interval {self.low:.2f} to {self.high:.2f}, {every})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One run of a case, judged.

    In results.json the recording has no `steps` and no `tools`: those are in recordings.jsonl. What reports need of
    the steps is in `times`, and in `agent` where the trial did not pass.
    """

    outcome: Outcome
    reason: str | None
    verdicts: Sequence[Verdict]
    scores: Sequence[Score]
    recording: Recording
    warnings: Sequence[str] = ()
    times: Sequence[StepTime] = ()
    agent: Sequence[AgentStep] = ()

    def model_uses(self) -> Iterator[tuple[str, ModelUse]]:
        """Yield what was asked of language models, each with the operation that asked it."""
        yield from ((step.op, step.model) for step in self.times or self.recording.steps if step.model)
        for record in self.recording.retrieval:
            yield from [("add (retrieval)", record.model)] if record.model else []
            yield from (("search (retrieval)", asked.model) for asked in record.questions if asked.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case, judged over all its trials. `id` is `S5[topics]`; `where` is the story's place in its file.

    `needs` are the capabilities that the story asks of its target, sorted. `harm` is the story's own word, except that
    a memory that returned nothing lost and did not leak. `slug` is a readable name of the story, and
    `precondition` the id of one that says what it builds on.
    `control` and `control_because` are the story's own words on which controls are meant to pass or fail it. `redacted`
    counts the `secrets` and `texts` that were taken out after the case was judged, before it was written anywhere.
    `scores` are means over the trials; `metrics` are those over all categories, of the first level where there are
    several. `shown` is the trial that stands for the case; `rate` is null for a single trial. `leaked` says whether in
    any trial something was still there that a `forbid` of the story names; null where none was looked for.
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
    options: Mapping[str, Tree] = field(default_factory=dict)
    row: str | None = None
    seconds: float = 0.0
    harm: Harm | None = None
    slug: str | None = None
    precondition: str | None = None
    control: Mapping[str, str] = field(default_factory=dict)
    control_because: str | None = None
    redacted: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    scores: Sequence[Score] = ()
    rate: Rate | None = None
    warnings: Sequence[str] = ()
    shown: int = 0
    leaked: bool | None = None

    @property
    def name(self) -> str:
        """`S5`, or `S5[row]` for a row of a parametrized story."""
        return f"{self.story}[{self.row}]" if self.row else self.story

    @property
    def deciding(self) -> TrialResult | None:
        """The trial that stands for the case; None for a story that could not be read."""
        return self.trials[self.shown] if self.trials else None

    @property
    def retrieval(self) -> Sequence[RetrievalRecord]:
        """The retrieval tasks of the trial that stands for the case."""
        return self.deciding.recording.retrieval if self.deciding else ()

    @property
    def severity(self) -> tuple[int, int]:
        """How bad the case ended, less being worse: by its outcome, failures among them by their harm."""
        return WORST_FIRST.index(self.outcome), HARMS.index(self.harm or "wrong")

    @property
    def is_lost(self) -> bool:
        """Whether it was selected and has no result: its process ended, or the run was stopped before it."""
        return self.outcome == "error" and not self.trials
