"""What an operator may decide about the topics memory."""

from __future__ import annotations

from dataclasses import dataclass

from memstory_reference.input_checks import DEFAULT_LIMITS, Limits
from memstory_reference.text.secret_guard import SecretPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig(SecretPolicy):
    """`min_score` is a cosine; `retention_days=None` keeps engrams forever."""

    collection: str = "local2.memory"
    top_k: int = 5
    min_score: float = 0.3
    strict_topics: bool = True
    retention_days: float | None = None
    limits: Limits = DEFAULT_LIMITS
