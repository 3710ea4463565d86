"""A memory of one of three types, by which it expires, and which turns repeat it (M-02 to M-05, MF-2, MF-3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum

from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_choice, checked_moment
from memstory_reference.text.sentences import as_said, sentences
from memstory_reference.text.words import plain_words, spaced_words

CONVERSATION_DAYS = 30
YEARS = range(MINYEAR, MAXYEAR + 1)
"""A moment at either end could not be moved into another zone, or to its expiry."""


class MemoryType(StrEnum):
    """How long a memory lives: 30 days, forever, or to the end of its day."""

    CONVERSATION = "conversation"
    FACT = "fact"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory; `created_at` is aware UTC."""

    id: str
    content: str
    memory_type: MemoryType
    created_at: datetime
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A memory with its cosine to the query, cut to [0, 1]."""

    memory: Memory
    score: float


def memory_type_of(name: object) -> MemoryType:
    """Return the type of that name, or raise InputError that lists the three."""
    return MemoryType(checked_choice(name, "memory_type", list(MemoryType)))


def expires_at(memory_type: MemoryType, created_at: datetime, zone: tzinfo = UTC) -> datetime | None:
    """Return the last moment at which a memory is alive, in UTC; None for a fact.

    A context lives to the last microsecond of the day on which it was made, as `zone` reckons days.

    >>> expires_at(MemoryType.CONTEXT, datetime(2026, 5, 1, 10, tzinfo=UTC)).isoformat()
    '2026-05-01T23:59:59.999999+00:00'
    """
    match memory_type:
        case MemoryType.CONVERSATION:
            return created_at + timedelta(days=CONVERSATION_DAYS)
        case MemoryType.CONTEXT:
            # From the next midnight back: in some zones the clocks change at midnight, and 23:59 comes twice.
            tomorrow = created_at.astimezone(zone).date() + timedelta(days=1)
            return datetime.combine(tomorrow, time.min, zone).astimezone(UTC) - timedelta(microseconds=1)
        case MemoryType.FACT:
            return None


def is_expired(memory: Memory, now: datetime, zone: tzinfo = UTC) -> bool:
    """Say whether a memory is over: the only rule, for reading and for cleaning up alike."""
    last = expires_at(memory.memory_type, memory.created_at, zone)
    return last is not None and now > last


def stored_moment(text: object) -> datetime:
    """Return a stored timestamp as aware UTC; one without a zone is from an older version and meant UTC."""
    moment = checked_moment(text, "created_at", UTC)
    if not YEARS.start < moment.year < YEARS.stop - 1:
        raise InputError(f"created_at {text!r:.60} is not allowed; allowed: the years 2 to 9998")
    return moment


def score_of(similarity: float) -> float:
    """Return a cosine as a score: cut to [0, 1], for opposites are no more than unrelated (M-08, MF-16).

    >>> [round(score_of(1 - distance), 6) for distance in (0, 0.4, 0.7, 2.0)]
    [1.0, 0.6, 0.3, 0.0]
    """
    return min(1.0, max(0.0, similarity))


_TURN = re.compile(r"\AUser: (?P<said>.*?)(?:\nAssistant: .*)?\Z", re.DOTALL)
_LEAST_WORDS = 3
"""Fewer words say nothing by themselves, and stand in many texts."""


def statements(memory: Memory) -> list[str]:
    """Return what a memory states, as plain words: of a turn what the user told, questions aside."""
    turn = _TURN.match(memory.content) if memory.memory_type is MemoryType.CONVERSATION else None
    told = (
        [one for one in sentences(turn["said"]) if not one.rstrip().endswith("?")]
        if turn
        else [as_said(memory.content)]
    )
    return [spaced_words(one) for one in told if len(plain_words(one)) >= _LEAST_WORDS]


def states(text: str, stated: Iterable[str]) -> bool:
    """Say whether a text holds one of the statements, at the limits of words.

    >>> states('You told me: "My name is Alex".', [" my name is alex "])
    True
    """
    plain = spaced_words(text)
    return any(one in plain for one in stated)


def repeating_turns(memory: Memory, others: Iterable[Memory]) -> list[Memory]:
    """Return the turns that say what `memory` states."""
    stated = statements(memory)
    turns = (one for one in others if one.id != memory.id and one.memory_type is MemoryType.CONVERSATION)
    return [one for one in turns if states(one.content, stated)]
