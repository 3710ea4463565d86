"""What an operator may decide about the observations memory."""

from __future__ import annotations

from dataclasses import dataclass

from memstory_reference.setting_rules import Ruled, count, number


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsConfig(Ruled):
    """`min_sim` is the cosine below which only keywords admit an observation; ratings lie within their two limits.

    `context_characters` is the most that a planner is told at once.
    """

    top_k: int = 3
    min_sim: float = 0.30
    rating_min: float = -2.0
    rating_max: float = 2.0
    context_characters: int = 20_000


ObservationsConfig.rules = {
    "top_k": count(1_000),
    "min_sim": number(-1, 1, "a number"),
    "rating_min": number(-100, 0, "a number"),
    "rating_max": number(0, 100, "a number"),
    "context_characters": count(1_000_000, low=200),
}
