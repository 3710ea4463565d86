"""Steps 1 to 5 of an ingestion: a text to its chunks, and what becomes of each, given what the memory holds already.

A plan is made for many texts at once, and each sees what the ones before it will have stored, as if they had come one
by one. The chunks of one text are all weighed against the memory as it was before that text (P-08, PF-4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory_reference.input_checks import checked_memory, limits_of
from memstory_reference.ports import NewId
from memstory_reference.systems.pipeline.chunk import (
    USER,
    ChunkOutcome,
    ChunkReceipt,
    ChunkType,
    MemoryChunk,
    Utterance,
    Vector,
    Write,
    content_hash,
)
from memstory_reference.systems.pipeline.reading import Detectors, Signals, clean, memory_type_of, preference_key
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.text.chunks import split_chunks
from memstory_reference.text.secret_guard import Guard
from memstory_reference.text.words import TokenCounter

NOVELTY_WEIGHT = 0.6
SALIENCE_WEIGHT = 0.4

ENTITY = 0.3
NUMBER = 0.2
PREFERENCE = 0.4
TECHNICAL = 0.1

# Decimal fractions have no exact binary form: 0.3 reached by two ways must be one and the same 0.3.
_DIGITS = 12
_NO_LENGTH = 1e-9
_ROUNDING = 1e-6  # vectors are float32: what is 0.3 by arithmetic may come out a little below


def salience(signals: Signals) -> float:
    """Return the sum of the signals, at most 1.

    >>> salience(Signals(has_entity=True, has_number=True, has_preference=True, is_technical=True))
    1.0
    """
    weighed = (
        (signals.has_entity, ENTITY),
        (signals.has_number, NUMBER),
        (signals.has_preference, PREFERENCE),
        (signals.is_technical, TECHNICAL),
    )
    return min(1.0, round(sum(weight for is_there, weight in weighed if is_there), _DIGITS))


def importance(novelty: float, salience: float) -> float:
    """Return the importance, in [0, 1].

    >>> importance(0.3, 0.3), importance(1.0, 0.9)
    (0.3, 0.96)
    """
    return round(NOVELTY_WEIGHT * novelty + SALIENCE_WEIGHT * salience, _DIGITS)


def novelty(vector: NDArray[np.floating], centroid: NDArray[np.floating] | None) -> float:
    """Return the cosine distance of a vector and the mean of what is known, cut to [0, 1].

    Without a mean, or with one of no length (opposite vectors cancel out), everything is new (PF-4).
    """
    if centroid is None:
        return 1.0
    mean, new = np.asarray(centroid, np.float64), np.asarray(vector, np.float64)
    lengths = float(np.linalg.norm(mean)), float(np.linalg.norm(new))
    if min(lengths) < _NO_LENGTH:
        return 1.0
    return float(np.clip(1.0 - float(mean @ new) / (lengths[0] * lengths[1]), 0.0, 1.0))


def centroid(vectors: Sequence[Sequence[float]] | NDArray[np.floating]) -> NDArray[np.float64] | None:
    """Return the mean of unit vectors; None for none."""
    matrix = np.asarray(vectors, np.float64)
    return None if matrix.size == 0 else matrix.mean(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One chunk of a text, with the hash of its content and the key that it would have as a preference."""

    content: str
    content_hash: str
    key: str
    utterance: Utterance


def pieces_of(utterance: Utterance, config: PipelineSettings, counter: TokenCounter) -> list[Piece]:
    """Return the chunks of an utterance, none for a text of nothing but whitespace; InputError for a chunk too long."""
    contents = split_chunks(
        clean(utterance.text),
        max_tokens=config.max_chunk_tokens,
        min_tokens=config.min_chunk_tokens,
        count=counter.count,
    )
    limits, pieces = limits_of(config), list[Piece]()
    for content in contents:
        identity = content_hash(checked_memory(content, limits, "text"))
        key = preference_key(content, identity)
        pieces.append(Piece(content=content, content_hash=identity, key=key, utterance=utterance))
    return pieces


Twin = tuple[str, ChunkType, str | None]
"""Content, type, and session for working memories: what makes two memories the same (PF-6)."""


@dataclass(slots=True, kw_only=True)
class UserMemories:
    """What a user's memory holds that matters to new texts. `total` is the sum of `count` unit vectors."""

    total: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    count: int = 0
    twins: dict[Twin, MemoryChunk] = field(default_factory=dict)
    preferences: dict[str, MemoryChunk] = field(default_factory=dict)

    @property
    def centroid(self) -> NDArray[np.float64] | None:
        """The mean of the stored vectors; None where there are none."""
        return self.total / self.count if self.count else None

    def learn(self, write: Write) -> None:
        """Take in what is going to be stored."""
        memory = write.memory
        if memory.key is not None:
            self.preferences[memory.key] = memory
            return
        self.twins[twin_of(memory.content, memory.memory_type, memory.session_id)] = memory
        if write.is_new:
            self.total = self.total + write.vector if self.count else np.asarray(write.vector, np.float64)
            self.count += 1


def twin_of(content: str, kind: ChunkType, session: str) -> Twin:
    """Return what another memory would have to share to be the same."""
    # What is going on in one session is not what is going on in another.
    return content, kind, session if kind is ChunkType.WORKING else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Decides for one user; `now` is the moment of all new memories, `vectors` has that of each hash.

    A piece that the guard refuses needs no vector.
    """

    user_id: str
    now: datetime
    vectors: Mapping[str, Vector]
    new_id: NewId
    config: PipelineSettings
    detectors: Detectors
    guard: Guard

    def plan(
        self, texts: Sequence[Sequence[Piece]], known: UserMemories
    ) -> tuple[list[list[ChunkReceipt]], list[Write]]:
        """Return a receipt for each chunk of each text, and what is to be written; `known` learns what that is."""
        receipts: list[list[ChunkReceipt]] = []
        writes: list[Write] = []
        for pieces in texts:
            before = known.centroid
            row: list[ChunkReceipt] = []
            for piece in pieces:
                receipt, write = self._decide(piece, known, before)
                row.append(receipt)
                if write is not None:
                    known.learn(write)
                    writes.append(write)
            receipts.append(row)
        return receipts, writes

    def _decide(
        self, piece: Piece, known: UserMemories, before: NDArray[np.float64] | None
    ) -> tuple[ChunkReceipt, Write | None]:
        said, is_from_user, least = piece.utterance, piece.utterance.role == USER, self.config.store_threshold
        kind = said.memory_type_hint or memory_type_of(piece.content, self.detectors, is_from_user=is_from_user)
        discarded = ChunkReceipt(content=piece.content, outcome=ChunkOutcome.DISCARDED, reason="", memory_type=kind)
        if refusal := self.guard(piece.content):
            return replace(discarded, reason=refusal), None
        key = piece.key if kind is ChunkType.PROCEDURAL else None
        twin = twin_of(piece.content, kind, said.session_id)
        held = known.twins.get(twin) if key is None else known.preferences.get(key)
        if held and held.content == piece.content:
            again = replace(held, times_seen=held.times_seen + 1, updated_at=self.now)
            reason = f"the same text is stored already and was now seen {again.times_seen} times"
            bumped = replace(discarded, outcome=ChunkOutcome.BUMPED, reason=reason)
            return replace(bumped, memory=again, importance=again.importance), Write(memory=again)
        signals = self.detectors.signals(piece.content, is_from_user=is_from_user)
        vector = self.vectors[piece.content_hash]
        weight = importance(novelty(vector, before), salience(signals))
        if weight < least - _ROUNDING and held is None:
            return replace(discarded, reason=f"importance {weight:.3f} is below {least:g}", importance=weight), None
        memory = MemoryChunk(
            id=self.new_id(),
            user_id=self.user_id,
            session_id=said.session_id,
            memory_type=kind,
            content=piece.content,
            importance=weight,
            created_at=self.now,
            updated_at=self.now,
            key=key,
            role=said.role,
            source=said.source,
        )
        outcome, reason = ChunkOutcome.STORED, f"importance {weight:.3f} reaches {least:g}"
        if held:
            outcome, reason = ChunkOutcome.UPDATED, f"it replaces what {key!r} held, which stays in its history"
        stored = replace(discarded, outcome=outcome, reason=reason, memory=memory, importance=weight)
        return stored, Write(memory=memory, vector=vector)
