"""What an operator decides about the turns memory, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from memstory.models.ollama_address import DEFAULT
from memstory_reference.input_checks import DEFAULT_LIMITS, Limits
from memstory_reference.setting_rules import (
    MODEL_RULES,
    SECRET_RULES,
    SWITCH,
    CheckedSettings,
    ConfiguredSettings,
    count_rule,
    number_rule,
    text_rule,
)
from memstory_reference.systems.turns.ranking.weighting import Weights
from memstory_reference.text.secret_guard import SecretPolicy

LIMITS = replace(DEFAULT_LIMITS, max_memory_characters=1_000_000)
"""What people paste into a chat, and what an assistant answers when it does not stop, is a turn like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsConfig(SecretPolicy, CheckedSettings):
    """`pool` is how many turns each of vectors and words bring to be ranked.

    `min_score` is the least evidence of each turn that a search returns: -1, all of them. `cleaning` lets a question be
    embedded a second time, without names and words that only ask.
    """

    top_k: int = 10
    pool: int = 50
    min_score: float = -1.0
    context_tokens: int = 1_000
    window_turns: int = 10
    cleaning: bool = True
    weights: Weights = field(default_factory=Weights)
    limits: Limits = LIMITS


TurnsConfig.rules = {
    "top_k": count_rule(1_000),
    "pool": count_rule(1_000, low=10),
    "min_score": number_rule(-1, 1, "a number"),
    "context_tokens": count_rule(100_000),
    "window_turns": count_rule(1_000, low=0),
    "cleaning": SWITCH,
    **SECRET_RULES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsSettings(ConfiguredSettings):
    """`store` is a folder, or the URL of a Postgres database that several processes may share."""

    place = "store"

    store: str = ".turns"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    ollama_host: str = DEFAULT
    config: TurnsConfig = field(default_factory=TurnsConfig)


TurnsSettings.rules = {
    "store": text_rule("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE"),
    **MODEL_RULES,
    **TurnsConfig.rules,
}
