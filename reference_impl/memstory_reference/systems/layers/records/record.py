"""What the three layers hold: typed records, and their one written form (seed 003, C-01 to C-03)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from memstory.contract.values import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
import re

STABLE = frozenset(
    {
        *("identity", "relationship", "work", "education", "location", "health", "coping_strategy", "preference"),
        *("interest", "skill", "value", "goal", "routine", "history", "possession", "note"),
    }
)
SESSION_ONLY = frozenset({"mood", "current_state", "small_talk", "logistics", "today"})

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Durability(StrEnum):
    """How long facts of a category may be kept; `unknown` ones must prove themselves in the session first."""

    STABLE = "stable"
    SESSION_ONLY = "session_only"
    UNKNOWN = "unknown"


def normal_category(name: str) -> str:
    r"""Return a category as it is stored; the empty text if it is not a name.

    >>> normal_category(" Coping Strategy "), normal_category("x]\n[rule")
    ('coping_strategy', '')
    """
    folded = re.sub(r"[\s-]+", "_", name.strip().lower())
    return folded if _NAME.fullmatch(folded) else ""


def durability(category: str) -> Durability:
    """Return how long facts of this category may be kept."""
    if category in SESSION_ONLY:
        return Durability.SESSION_ONLY
    return Durability.STABLE if category in STABLE else Durability.UNKNOWN


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
