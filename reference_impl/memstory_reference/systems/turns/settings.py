"""What an operator decides about the turns memory, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from memstory_reference.input_checks import DEFAULT_LIMITS, Limits
from memstory_reference.setting_rules import SWITCH, CheckedSettings, Place, count_rule, number_rule
from memstory_reference.systems.turns.ranking import Weights

LIMITS = replace(DEFAULT_LIMITS, max_memory_characters=1_000_000)
"""What people paste into a chat, and what an assistant answers when it does not stop, is a turn like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsSettings(CheckedSettings):
    """`store` is a folder, or the URL of a Postgres database that several processes may share.

    `pool` is how many turns each of vectors and words bring to be ranked. `min_score` is the least evidence of each
    turn that a search returns: -1, all of them. `cleaning` lets a question be embedded a second time, without names and
    words that only ask.
    """

    place = "store"

    store: Place = ".turns"
    top_k: Annotated[int, count_rule(1_000)] = 10
    pool: Annotated[int, count_rule(1_000, low=10)] = 50
    min_score: Annotated[float, number_rule(-1, 1, "a number")] = -1.0
    context_tokens: Annotated[int, count_rule(100_000)] = 1_000
    window_turns: Annotated[int, count_rule(1_000, low=0)] = 10
    cleaning: Annotated[bool, SWITCH] = True
    weights: Weights = field(default_factory=Weights)
    limits: Limits = LIMITS
