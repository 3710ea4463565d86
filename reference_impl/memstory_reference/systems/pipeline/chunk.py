"""The values of the pipeline: what is said, what is kept of it, what happened to each piece, what a recall returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_choice, checked_owner, short_repr

Vector = NDArray[np.float32]

USER = "user"
ROLES = (USER, "assistant", "tool", "system")


class ChunkType(StrEnum):
    """What kind of memory a text is; a str, so that it has an upper case (PF-14)."""

    PROCEDURAL = "procedural"
    WORKING = "working"
    SEMANTIC = "semantic"
    EPISODIC = "episodic"


BY_VECTOR = (ChunkType.WORKING, ChunkType.SEMANTIC, ChunkType.EPISODIC)
"""The types that are found by meaning; procedural memories are looked up by their key."""


class ChunkOutcome(StrEnum):
    """What happened to one chunk."""

    STORED = "stored"
    UPDATED = "updated"
    BUMPED = "bumped"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A text that was said. Only what a user said can be the user's preference (PF-21)."""

    text: str
    session_id: str
    memory_type_hint: ChunkType | None = None
    role: str = USER
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChunk:
    """One memory. Times are aware UTC.

    `key` names a procedural memory, `replaced_by` the later word on it. `summary_id` is the summary that stands for a
    compressed memory; a summary has `compression_source` set and tells its `source_session_id`. `times_seen` counts how
    often the same text came.
    """

    id: str
    user_id: str
    session_id: str
    memory_type: ChunkType
    content: str
    importance: float
    created_at: datetime
    updated_at: datetime
    key: str | None = None
    role: str = USER
    source: str | None = None
    times_seen: int = 1
    compressed: bool = False
    summary_id: str | None = None
    source_session_id: str | None = None
    compression_source: bool = False
    replaced_by: str | None = None

    @property
    def is_archived(self) -> bool:
        """Whether a summary stands for it (PF-8)."""
        return self.compressed and self.summary_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A memory that is to be written; without a vector it is there already, or is to be embedded before."""

    memory: MemoryChunk
    vector: Vector = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def is_new(self) -> bool:
        """Whether it is a row of its own."""
        return len(self.vector) > 0


def content_hash(content: str) -> str:
    """Return what identifies a content: two contents of one hash are the same text."""
    return blake2b(content.encode("utf-8"), digest_size=20).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkReceipt:
    """What happened to one chunk and why. `memory` is None for one that was discarded.

    `importance` is None for a chunk that was not weighed, because it must not be kept.
    """

    content: str
    outcome: ChunkOutcome
    reason: str
    memory_type: ChunkType
    memory: MemoryChunk | None = None
    importance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """A memory in a result; `score` is None for a procedural one, `similarity` the cosine before any re-ranking."""

    memory: MemoryChunk
    tokens: int
    score: float | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """What was recalled, procedural memories first; `block` is to be set before a prompt, empty for nothing (P-27).

    `total_tokens` counts contents, `assembled_tokens` the whole block (PF-13); `rerank` is `off`, `blend` or
    the name of the re-ranker; `token_counter` says how tokens were counted.
    """

    memories: Sequence[RecalledMemory] = ()
    block: str = ""
    total_tokens: int = 0
    budget_used: float = 0.0
    assembled_tokens: int = 0
    rerank: str = "off"
    token_counter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionReport:
    """What a compression did. `sessions` were uncompressed when it began; it begins only above the threshold."""

    triggered: bool
    sessions: int
    compressed: Sequence[str] = field(default=())
    summaries: Sequence[str] = field(default=())
    by: str = ""


MAX_TOKENS = 10_000_000
MAX_LISTED = 10_000_000
MAX_IDS = 100_000


def checked_utterances(utterances: Any, max_characters: int) -> list[Utterance]:
    """Return utterances that can be taken in; an empty text can, and nothing is kept of it."""
    if isinstance(utterances, str) or not isinstance(utterances, Sequence):
        raise InputError(f"utterances must be a list, not {type(utterances).__name__}")
    return [_checked_utterance(one, max_characters) for one in utterances]


def checked_text_in(text: Any, max_characters: int, what: str = "text", setting: str = "max_text_characters") -> str:
    """Return a text to be cleaned, which replaces what no file can hold: of at most so many characters, if any."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {type(text).__name__}")
    if len(text) > max_characters:
        raise InputError(f"{what}: {len(text)} characters; at most {max_characters} ({setting}). Give it in parts")
    return text


def checked_type(value: Any, what: str) -> ChunkType:
    """Return the memory type that `value` names."""
    return ChunkType(checked_choice(value, what, list(ChunkType)))


def checked_types(values: Any) -> tuple[ChunkType, ...]:
    """Return the types to recall; None and nothing mean all."""
    if values is not None and (isinstance(values, str) or not isinstance(values, Sequence)):
        raise InputError(f"memory_types must be a list of types, not {type(values).__name__}")
    return tuple(dict.fromkeys(checked_type(value, "memory_types") for value in values or ChunkType))


def checked_flag(value: Any, what: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{what} {short_repr(value)} is not allowed; allowed: true or false")
    return value


def _checked_utterance(utterance: Any, max_characters: int) -> Utterance:
    if not isinstance(utterance, Utterance):
        raise InputError(f"utterances must hold utterances, not {type(utterance).__name__}")
    checked_text_in(utterance.text, max_characters)
    checked_owner(utterance.session_id, "session_id")
    checked_choice(utterance.role, "role", ROLES)
    if utterance.source is not None:
        checked_owner(utterance.source, "source")
    hint = utterance.memory_type_hint
    return replace(utterance, memory_type_hint=None if hint is None else checked_type(hint, "memory_type_hint"))
