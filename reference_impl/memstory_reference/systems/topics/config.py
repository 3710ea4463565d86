"""What an operator may decide about the topics memory."""

from __future__ import annotations

from dataclasses import dataclass

from memstory_reference.input_checks import DEFAULT_LIMITS, Limits
from memstory_reference.text.secret_guard import Guard, secret_in


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """`min_score` is a cosine; `retention_days=None` keeps engrams forever.

    `guard` says of a text why it must not be stored, no matter who writes it; None lets everything be stored.
    """

    collection: str = "local2.memory"
    top_k: int = 5
    min_score: float = 0.3
    strict_topics: bool = True
    retention_days: float | None = None
    guard: Guard | None = secret_in
    limits: Limits = DEFAULT_LIMITS
