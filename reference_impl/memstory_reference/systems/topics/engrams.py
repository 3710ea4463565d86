"""What the memory hands out, and in which order engrams come: what was told before what was only asked (LF-19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.systems.topics.topic_keys import speaks_of
from memstory_reference.text.sentences import is_no_answer, sentences, tells_nothing

REWARD_WEIGHT = 0.1
ECHO_MARGIN = 0.05
"""An engram of a recall must be nearer by more than this to come before what the user said."""

CANDIDATES = 4
"""Engrams looked at first for each one asked for."""

_ANSWER = "\nA: "
# Vectors are float32: a cosine of exactly 0.3 may be computed as 0.29999998, and still is at the threshold.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class EngramEntry:
    """An engram as it is stored."""

    id: str
    content: str
    metadata: Mapping[str, Primitive]

    @property
    def time(self) -> str:
        """When it was said, as stored; empty if a damaged row does not say."""
        return str(self.metadata.get("timestamp_utc", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """A standing fact; `since` are the engrams that spoke of it after it was saved, newest first."""

    id: str
    topic: str
    content: str
    timestamp_utc: str
    since: Sequence[EngramEntry] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEngram(EngramEntry):
    """An engram found by meaning; `score` is the raw cosine, whatever the order that reward gave it."""

    score: float


def turn_text(query: str, answer: str) -> str:
    """Return what an engram says of a turn."""
    return f"Q: {query}{_ANSWER}{answer}"


def user_words(content: str) -> str:
    """Return what the user said in an engram: the question of a turn, else all of it."""
    return content.removeprefix("Q: ").partition(_ANSWER)[0]


def statements_in(content: str) -> list[str]:
    """Return the sentences of an engram in which the user told something."""
    return [one for one in sentences(user_words(content)) if not tells_nothing(one)]


def rank_engrams(candidates: Sequence[FoundEngram], *, top_k: int, min_score: float) -> list[FoundEngram]:
    """Return the best `top_k` of those at or above `min_score`, by `effective_score`; ties by score, then id.

    Engrams in which nothing was told come last, and other recalls take at most half of the places while there is
    something first-hand.

    >>> a = FoundEngram(id="a", content="", score=0.82, metadata={})
    >>> b = FoundEngram(id="b", content="", score=0.78, metadata={"reward": 1.0})
    >>> [found.id for found in rank_engrams([a, b], top_k=2, min_score=0.3)]
    ['b', 'a']
    """
    admitted = sorted((found for found in candidates if found.score >= min_score - _ROUNDING), key=_best_first)
    empty = [found for found in admitted if is_empty(found)]
    first_hand = [found for found in admitted if not is_empty(found) and not is_recall(found)]
    recalls = [found for found in admitted if not is_empty(found) and is_recall(found)]
    told = [*first_hand, *recalls[: max(top_k // 2, top_k - len(first_hand))]]
    return [*sorted(told, key=_best_first), *empty][:top_k]


def is_settled(found: Sequence[FoundEngram], *, top_k: int, bonus: float) -> bool:
    """Say whether no engram beyond `found`, nearest first, can be among the best; reward gives it `bonus` at most."""
    own = (one for one in found if not is_empty(one) and not is_recall(one))
    scores = sorted(map(effective_score, own), reverse=True)
    return len(scores) >= top_k and scores[top_k - 1] >= found[-1].score + bonus


def is_empty(found: EngramEntry) -> bool:
    """Say whether a turn told the memory nothing: only questions and courtesies, looked up or without an answer."""
    question, has_answer, answer = found.content.removeprefix("Q: ").partition(_ANSWER)
    if not has_answer or not tells_nothing(question):
        return False
    return is_recall(found) or is_no_answer(answer) or "?" not in question


def effective_score(found: FoundEngram) -> float:
    """Return the score that decides the order: similarity + 0.1 reward, and 0.05 less for a recall's own engram."""
    reward = found.metadata.get("reward", 0.0)
    rating = min(1.0, max(-1.0, float(reward))) if isinstance(reward, (int, float)) else 0.0
    echo = ECHO_MARGIN if is_recall(found) else 0.0
    return found.score + REWARD_WEIGHT * rating - echo


def _best_first(found: FoundEngram) -> tuple[float, bool, float, str]:
    # Rounded, so that float32 noise does not decide between equals: then what is not an echo comes first.
    return (
        -round(effective_score(found), 6),
        is_recall(found),
        -round(found.score, 6),
        found.id,
    )


def is_recall(found: EngramEntry) -> bool:
    """Say whether a memory was looked up for the turn: then it may only repeat what is remembered."""
    return found.metadata.get("is_recall") is True


def _present(record: Record) -> dict[str, Primitive]:
    # Sorted: a store gives keys in any order, and what is recorded twice must be the same twice.
    return {key: value for key, value in sorted(record.metadata.items()) if value is not None}


def topic_entry(record: Record) -> TopicEntry:
    """Return what a row says, without what was said since."""
    return TopicEntry(
        id=record.id,
        topic=str(record.metadata["topic"]),
        content=record.text,
        timestamp_utc=str(record.metadata.get("timestamp_utc", "")),
    )


def engram_entry(record: Record) -> EngramEntry:
    """Return what a row says."""
    return EngramEntry(id=record.id, content=record.text, metadata=_present(record))


def found_engram(match: Match) -> FoundEngram:
    """Return what a search has found."""
    record = match.record
    return FoundEngram(id=record.id, content=record.text, score=float(match.similarity), metadata=_present(record))


def newer_about(topic: Record, told: Sequence[tuple[Record, Sequence[str]]]) -> list[str]:
    """Return the ids of the engrams, each with its statements, that speak of a topic and are not older than it."""
    name, saved = str(topic.metadata["topic"]), str(topic.metadata["timestamp_utc"])
    return [
        one.id
        for one, said in told
        if str(one.metadata["timestamp_utc"]) >= saved and any(speaks_of(name, sentence) for sentence in said)
    ]
