"""What the layers hold, and what a session holds that is not memory yet (C-01 to C-05, C-11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from memstory.contract.values import Json
from memstory_reference.text.lines import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


STABLE = frozenset(
    {
        *("identity", "relationship", "work", "education", "location", "health", "coping_strategy", "preference"),
        *("interest", "skill", "value", "goal", "routine", "history", "possession", "note"),
    }
)
SESSION_ONLY = frozenset({"mood", "current_state", "small_talk", "logistics", "today"})
"""Categories of facts that last, and of those that end with their session; any other must prove itself in it first."""


class Layer(StrEnum):
    """The layers by the names that stores and the status use."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"


LABELS: Mapping[Layer, str] = {Layer.SEMANTIC: "facts", Layer.EPISODIC: "sessions", Layer.PROCEDURAL: "rules"}
"""The same layers as people read them."""


class Standing(StrEnum):
    """Whether a record is retrieved: only an active one is."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A triple about the world, with the words of the user that it rests on.

    `corrects` is the object that stood in its place until the user corrected it.
    """

    category: str
    subject: str
    predicate: str
    object: str
    evidence_quote: str
    corrects: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """What one session was about. `by` is `model` or `rules`."""

    summary: str
    topics: Sequence[str] = ()
    turns: int = 0
    started_at: str = ""
    by: str = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How the user wants the assistant to act; `explicit` if it was said as an instruction."""

    rule: str
    explicit: bool
    evidence_quote: str


Content: TypeAlias = Fact | Arc | Rule

IS_NAMED = "IS_NAMED"
NOTE = "NOTED"
"""The predicate of a text that was stored as it was given, and is not a triple of anything."""

DENIED, ONE_VALUE = "NOT_", "_IS"
"""How a predicate begins that says what is not so, and how one ends of which a thing has one value."""

TYPES: Mapping[Layer, type[Any]] = {
    Layer.SEMANTIC: Fact,
    Layer.EPISODIC: Arc,
    Layer.PROCEDURAL: Rule,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A row of the store. `count` says how often it was said; `session` is a hash, never the session's own name.

    `vector` has length 1; None where no embedding was to be had, and on rows that were only read.
    """

    id: str
    owner: str
    content: Content
    created_at: datetime
    updated_at: datetime
    session: str | None = None
    count: int = 1
    standing: Standing = Standing.ACTIVE
    superseded_by: str | None = None
    vector: NDArray[np.float32] | None = None

    @property
    def layer(self) -> Layer:
        """Return the layer, which the content decides."""
        return layer_of(self.content)

    @property
    def is_active(self) -> bool:
        """Whether it is retrieved."""
        return self.standing is Standing.ACTIVE


def layer_of(content: Content) -> Layer:
    """Return the layer that holds such contents."""
    return next(layer for layer, kind in TYPES.items() if isinstance(content, kind))


def is_note(content: Content) -> bool:
    """Say whether it is a text that was stored as it was given."""
    return isinstance(content, Fact) and content.predicate == NOTE


def text_of(content: Content) -> str:
    """Return the text that is embedded and whose tokens are searched.

    >>> text_of(Rule(rule="Answer briefly.", explicit=True, evidence_quote="be brief"))
    'Answer briefly. be brief'
    """
    match content:
        case Fact(predicate="NOTED"):
            return content.object
        case Fact():
            words = (content.subject, content.predicate.replace("_", " ").lower(), content.object)
            return f"{' '.join(words)}. {content.evidence_quote}"
        case Arc():
            return " ".join((content.summary, *content.topics))
        case Rule():
            return f"{content.rule} {content.evidence_quote}".strip()


def content_data(content: Content) -> dict[str, Json]:
    """Return the content as JSON."""
    data = asdict(content)
    # As rows were written before a fact could correct another.
    named = {name: value for name, value in data.items() if name != "corrects" or value}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}


def content_of(layer: Layer, data: Mapping[str, Json]) -> Content:
    """Return what `content_data` has written."""
    named = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    content: Content = TYPES[layer](**named)
    return content


WORKING_MEMORY = "working_memory"
"""The state's key for the entries of a turn."""


class SemanticWorkingMemoryEntry(TypedDict):
    """A fact, with its whole triple."""

    type: Literal["semantic"]
    evidence_quote: str
    category: str
    subject: str
    predicate: str
    object: str


class EpisodicWorkingMemoryEntry(TypedDict):
    """An earlier session."""

    type: Literal["episodic"]
    summary: str
    ended_at: str


class ProceduralWorkingMemoryEntry(TypedDict):
    """A rule of this user."""

    type: Literal["procedural"]
    rule: str
    evidence_quote: str


WorkingMemoryEntry: TypeAlias = SemanticWorkingMemoryEntry | EpisodicWorkingMemoryEntry | ProceduralWorkingMemoryEntry


def entry_of(record: MemoryRecord) -> WorkingMemoryEntry:
    """Return what a turn gets of a record."""
    content = record.content
    match content:
        case Fact():
            return SemanticWorkingMemoryEntry(
                type="semantic",
                evidence_quote=content.evidence_quote,
                category=content.category,
                subject=content.subject,
                predicate=content.predicate,
                object=content.object,
            )
        case Arc():
            return EpisodicWorkingMemoryEntry(
                type="episodic", summary=content.summary, ended_at=record.created_at.date().isoformat()
            )
        case Rule():
            return ProceduralWorkingMemoryEntry(
                type="procedural", rule=content.rule, evidence_quote=content.evidence_quote
            )


def format_working_memory_entries(entries: Sequence[WorkingMemoryEntry]) -> str:
    r"""Return one line an entry, in order; the empty text for none.

    >>> print(format_working_memory_entries([{"type": "semantic", "evidence_quote": 'the "boss" is late',
    ...     "category": "relationship", "subject": "User", "predicate": "WORRIES_ABOUT", "object": "work"}]))
    [relationship] User WORRIES_ABOUT work — "the \"boss\" is late"
    """
    return "\n".join(map(_line, entries))


def _line(entry: WorkingMemoryEntry) -> str:
    match entry["type"]:
        case "semantic":
            category = one_line(entry["category"]).replace("[", "(").replace("]", ")")
            triple = " ".join(_bare(part) for part in (entry["subject"], entry["predicate"], entry["object"]))
            return f"[{category}] {triple} — {_quote(entry['evidence_quote'])}"
        case "episodic":
            return f"[session {entry['ended_at']}] {_bare(entry['summary'])}"
        case "procedural":
            return f"[rule] {_bare(entry['rule'])} — {_quote(entry['evidence_quote'])}"


def _bare(text: str) -> str:
    # The dash and the quotes are the line's own marks: a text that holds them must not seem to end early (SEC-2).
    return one_line(text).replace(" — ", " - ").replace('"', "'")


def _quote(text: str) -> str:
    return '"' + one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


MAX_TURNS = 400
"""Turns whose words are kept for the session's end, beside those that nobody has looked at; the counts go on beyond."""

MAX_HELD = 200
"""Candidates that wait for the session's end; of more, those that were heard longest ago go."""


class Decision(StrEnum):
    """What becomes of a candidate at its turn (C-10); `undecided` where the model was asked in vain."""

    COMMIT = "commit"
    HOLD = "hold"
    REPEAT = "repeat"
    DROP = "drop"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that may become a fact or a rule. `turns` are the numbers of the turns in which it was heard.

    While it waits, `decision` is hold or repeat; undecided; or commit, where the model that should compare it with what
    is stored failed. `reason` says who decided so.
    """

    id: str
    content: Fact | Rule
    turns: Sequence[int]
    decision: Decision = Decision.HOLD
    reason: str = ""

    @property
    def layer(self) -> Layer:
        return layer_of(self.content)

    def add_turn(self, turn: int) -> Candidate:
        """Return it with one more turn; the same turn counts once."""
        return self if turn in self.turns else replace(self, turns=(*self.turns, turn))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenTurn:
    """One turn of the transcript; `extracted` if both lanes have looked at it."""

    number: int
    user: str
    assistant: str
    extracted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMemoryBuffer:
    """An active session as it is persisted: its transcript, or the end of it, and what waits for its end.

    `arc_id` is the id that the session's summary will have, so that ending twice writes once. `missed` are the turns at
    which a model was asked in vain, each with the lanes that have still to look at it.
    """

    owner: str
    session: str
    arc_id: str
    started_at: datetime
    last_at: datetime
    turn_count: int = 0
    turns: Sequence[SpokenTurn] = ()
    held: Sequence[Candidate] = field(default=())
    missed: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def add_turn(self, user: str, assistant: str, at: datetime) -> SessionMemoryBuffer:
        """Return the buffer with one more turn."""
        turn = SpokenTurn(number=self.turn_count + 1, user=user, assistant=assistant)
        return replace(
            self, turn_count=turn.number, turns=_kept_turns((*self.turns, turn)), last_at=max(at, self.started_at)
        )

    def is_said_again(self, user: str) -> bool:
        """Say whether the last turn said the same and had no answer: then it is one turn, not two."""
        last = self.turns[-1] if self.turns else None
        return last is not None and last.number == self.turn_count and (last.user, last.assistant) == (user, "")

    def add_answer(self, assistant: str, at: datetime) -> SessionMemoryBuffer:
        """Return the buffer with the answer that the last turn did not have."""
        turns = (*self.turns[:-1], replace(self.turns[-1], assistant=assistant))
        return replace(self, turns=turns, last_at=max(at, self.started_at))

    def with_extracted(self, number: int) -> SessionMemoryBuffer:
        """Return the buffer with this turn marked as looked at."""
        turns = tuple(replace(turn, extracted=True) if turn.number == number else turn for turn in self.turns)
        missed = {turn: lanes for turn, lanes in self.missed.items() if turn != number}
        return replace(self, turns=turns, missed=missed)

    def with_missed(self, number: int, lanes: Sequence[str]) -> SessionMemoryBuffer:
        """Return the buffer with a turn that these lanes have still to look at."""
        return replace(self, missed={**self.missed, number: tuple(lanes)})

    def with_held(self, held: Sequence[Candidate]) -> SessionMemoryBuffer:
        """Return the buffer with other candidates."""
        return replace(self, held=tuple(held)[-MAX_HELD:])


def _kept_turns(turns: Sequence[SpokenTurn]) -> tuple[SpokenTurn, ...]:
    last = turns[-1].number if turns else 0
    return tuple(turn for turn in turns if turn.number > last - MAX_TURNS or not turn.extracted)
