"""What happened in a case, as plain data: everything that evaluation can see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memstory.contract.target import ModelUse, ToolSchema, Tree
from memstory.contract.values import quick_init

AnswerOutcome = Literal["right", "wrong", "refused", "unclear", "error"]
FailureKind = Literal["failed", "unsupported", "error", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a case could not be carried to its end."""

    kind: FailureKind
    message: str
    step: Sequence[int] = ()
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """A text that nothing may hold, and the places where it was found: `result`, `search`, `list`, `files` …."""

    text: str
    found: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a search for texts that must be gone has shown.

    `looked` are the places that could be looked at, `lost` the twins, which must be found, that were not.
    """

    forbidden: Sequence[Forbidden]
    looked: Sequence[str]
    twins: Sequence[str]
    lost: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The texts that the user's memory showed, listed and searched, before a turn and after it."""

    before: Sequence[str]
    after: Sequence[str]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step that was carried out.

    `path` is its place in the story, with the pass of a `repeat` or `parallel` behind the index of that step.
    `result` is the operation's result as JSON (see `memstory.contract.codec`); `error` is the text of a refusal.
    `names` maps every name saved so far to its value, which is what expectations on this step may refer to.
    `probe` is what was looked for afterwards, `witness` what was there before and afterwards.
    `judged` says of the facts of each `judged:` whether the answer fits them, as a judge said.
    `embedding_seconds` is the part of `seconds` in which the memory waited for its embedder, None if it cannot say.
    `model` is what a language model was asked because of the step, tries and background work included; of what runs at
    the same time only the `parallel` around it has it. `requests` are the last that a server got because of it, a line
    each.
    """

    path: Sequence[int]
    op: str
    args: Mapping[str, Tree]
    user: str
    session: str | None
    at: str
    result: Tree = None
    error: str | None = None
    names: Mapping[str, Tree] = field(default_factory=dict)
    seconds: float = 0.0
    embedding_seconds: float | None = None
    probe: Probe | None = None
    witness: Witness | None = None
    judged: Mapping[str, bool] = field(default_factory=dict)
    model: ModelUse | None = None
    requests: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """What a language model answered from the memories that were found, and what a judge said of it.

    `refused` says that it does not know what the data know; of `unclear` the judge gave no clear verdict; of an `error`
    the text says why there is no answer. `model` and `judge` are what both were asked.
    """

    text: str
    outcome: AnswerOutcome
    model: ModelUse
    judge: ModelUse


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecord:
    """One question of a retrieval task: its gold ids and what came back, best first, cut to k by the harness.

    `stale` are ids that were right before; questions of one `cluster` hang together; `tokens` is about how much text
    came back, `surplus` how many hits came beyond k; `answerable` is how sure the memory said it was of an answer.
    """

    id: str
    relevant: Sequence[str]
    retrieved: Sequence[str]
    scores: Sequence[float | None] = ()
    category: str | None = None
    judged: bool = True
    seconds: float = 0.0
    embedding_seconds: float | None = None
    stale: Sequence[str] = ()
    cluster: str | None = None
    tokens: int | None = None
    surplus: int | None = None
    answerable: float | None = None
    model: ModelUse | None = None
    answer: AnswerRecord | None = None

    def __str__(self) -> str:
        return f"{self.id}: wanted {', '.join(self.relevant)}; got {', '.join(self.retrieved) or 'nothing'}"

    @property
    def places(self) -> tuple[int, ...]:
        """The places, from 1, at which its gold was found; an id that came twice counts once."""
        return tuple(place for place, found in enumerate(dict.fromkeys(self.retrieved), 1) if found in self.relevant)

    @property
    def is_answered(self) -> bool:
        """Whether all its gold was found; where there is none, whether nothing came."""
        return set(self.relevant) <= set(self.retrieved) if self.relevant else not self.retrieved


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes that a memory takes on disk and in memory, and its processes; None where they are not its own alone."""

    disk_bytes: int
    resident_bytes: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRecord:
    """A retrieval task as it ran.

    `documents` counts all of them, `smallest` those of the smallest collection, against which k is held; `level` is the
    perturbation that this run had. `as_turns` says of dialogues whether the target got speaker, session and said_at as
    fields, or all of it as text. `model` is what remembering asked of a language model. Scores also look at the `cuts`
    beside k. `refused` names the documents that the memory would not take, each with its reason: to be found, they are
    missed. `notes` are on the data. `footprint` is that of the largest collection, once it was remembered.
    `preloaded` is whose memories were asked for, of a memory that was filled before and got nothing: then `documents`
    are as many as it says, 0 where it says nothing. `drawn_from` counts the questions of which these are a sample.
    """

    name: str
    digest: str
    k: int
    documents: int
    smallest: int
    questions: Sequence[QuestionRecord]
    apart: Sequence[str] = ()
    unusable: Sequence[str] = ()
    seconds: float = 0.0
    embedding_seconds: float | None = None
    level: Mapping[str, Tree] = field(default_factory=dict)
    as_turns: bool | None = None
    model: ModelUse | None = None
    cuts: Sequence[int] = ()
    refused: Sequence[str] = ()
    notes: Sequence[str] = ()
    footprint: Footprint | None = None
    preloaded: str | None = None
    drawn_from: int | None = None

    @property
    def counted(self) -> Sequence[QuestionRecord]:
        """The questions of its total: those that are judged and in no category that stands apart."""
        return [one for one in self.questions if one.judged and one.category not in self.apart]

    @property
    def depth(self) -> int:
        """How many results the memory was asked for."""
        return max(self.k, *self.cuts, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run (trial) of one case.

    `about` is what the target said about itself; `tools` are the schemas that it had announced, against which recorded
    calls are validated. `left` has a line for each task that the target left behind and that broke, or still runs.
    """

    story: str
    target: str
    trial: int = 0
    seed: int = 0
    steps: Sequence[StepRecord] = ()
    retrieval: Sequence[RetrievalRecord] = ()
    tools: Sequence[ToolSchema] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    failure: Failure | None = None
    seconds: float = 0.0
    left: Sequence[str] = ()
