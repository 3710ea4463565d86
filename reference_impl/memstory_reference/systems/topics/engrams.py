"""What the memory hands out, and the order in which engrams come: similarity, reward, and the echo of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.ports import Primitive

REWARD_WEIGHT = 0.1
ECHO_MARGIN = 0.05
"""An engram of a recall must be nearer by more than this to stand before one that is none."""

CANDIDATES = 4
"""Engrams looked at for each one asked for, so that a rewarded one can rise into the first top_k."""

# Vectors are float32: a cosine of exactly 0.3 may be computed as 0.29999998, and still is at the threshold.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """A standing fact."""

    id: str
    topic: str
    content: str
    timestamp_utc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngramEntry:
    """An engram as it is stored."""

    id: str
    content: str
    metadata: Mapping[str, Primitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEngram:
    """An engram found by meaning; `score` is the raw cosine, whatever the order that reward gave it."""

    id: str
    content: str
    score: float
    metadata: Mapping[str, Primitive]


def ranked(candidates: Sequence[FoundEngram], *, top_k: int, min_score: float) -> list[FoundEngram]:
    """Return the best `top_k` of those at or above `min_score`, by `effective_score`; ties by score, then id.

    >>> a = FoundEngram(id="a", content="", score=0.82, metadata={})
    >>> b = FoundEngram(id="b", content="", score=0.78, metadata={"reward": 1.0})
    >>> [found.id for found in ranked([a, b], top_k=2, min_score=0.3)]
    ['b', 'a']
    """
    admitted = [found for found in candidates if found.score >= min_score - _ROUNDING]
    return sorted(admitted, key=_best_first)[:top_k]


def effective_score(found: FoundEngram) -> float:
    """Return the score that decides the order: similarity + 0.1 reward, and 0.05 less for a recall's own engram."""
    reward = found.metadata.get("reward", 0.0)
    rating = min(1.0, max(-1.0, float(reward))) if isinstance(reward, (int, float)) else 0.0
    echo = ECHO_MARGIN if found.metadata.get("is_recall") is True else 0.0
    return found.score + REWARD_WEIGHT * rating - echo


def _best_first(found: FoundEngram) -> tuple[float, bool, float, str]:
    # Rounded, so that float32 noise does not decide between equals: then what is no echo comes first.
    return (
        -round(effective_score(found), 6),
        found.metadata.get("is_recall") is True,
        -round(found.score, 6),
        found.id,
    )
