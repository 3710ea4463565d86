"""What an operator may decide about the turns memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from memstory_reference.input_checks import DEFAULT_LIMITS, Limits
from memstory_reference.setting_rules import SWITCH, Ruled, count, number
from memstory_reference.systems.turns.ranking.weighting import Weights
from memstory_reference.text.secret_guard import Guard, secret_in


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsConfig(Ruled):
    """`pool` is how many turns each of vectors and words bring to be ranked.

    `min_score` is the least evidence of each turn that a search returns. `answerable` is what the best turn must have
    for anything to be returned where a search names no `min_score`: of questions that nothing answers 15 in 100 stay
    below .3 and 40 below .35, of the others less than 1. `cleaning` lets a question be embedded a second time, without
    names and words that only ask. `guard` says of a text why it must not be stored; None lets everything be stored.
    """

    top_k: int = 10
    pool: int = 50
    min_score: float = -1.0
    answerable: float = 0.33
    context_tokens: int = 1_000
    window_turns: int = 10
    cleaning: bool = True
    weights: Weights = field(default_factory=Weights)
    guard: Guard | None = secret_in
    limits: Limits = DEFAULT_LIMITS


TurnsConfig.rules = {
    "top_k": count(1_000),
    "pool": count(1_000, low=10),
    "min_score": number(-1, 1, "a number"),
    "answerable": number(-1, 1, "a number"),
    "context_tokens": count(100_000),
    "window_turns": count(1_000, low=0),
    "cleaning": SWITCH,
}
