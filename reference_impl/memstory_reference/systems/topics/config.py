"""What an operator may decide about the topics memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """`min_score` is a cosine; `retention_days=None` keeps engrams for ever."""

    collection: str = "local2.memory"
    top_k: int = 5
    min_score: float = 0.3
    strict_topics: bool = True
    retention_days: float | None = None
