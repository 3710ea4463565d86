"""What an operator decides about their own observations, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from memstory.models.ollama_address import DEFAULT
from memstory_reference.input_checks import DEFAULT_LIMITS, LIMIT_RULES
from memstory_reference.setting_rules import (
    ENGINE,
    MODEL_RULES,
    PLACE,
    SECRET_RULES,
    SQLITE,
    CheckedSettings,
    ConfiguredSettings,
    count_rule,
    number_rule,
)
from memstory_reference.text.secret_guard import SecretPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsConfig(SecretPolicy, CheckedSettings):
    """`min_sim` is the cosine below which only keywords admit an observation; ratings lie within their two limits.

    `store` is where the vectors are: in a file of our own, or in Chroma, while texts and words are in SQLite; or in
    Postgres with all the rest.
    `max_context_characters` is the most that a planner gets at once.
    """

    store: str = SQLITE
    top_k: int = 3
    min_sim: float = 0.30
    rating_min: float = -2.0
    rating_max: float = 2.0
    max_context_characters: int = 20_000
    max_memory_characters: int = DEFAULT_LIMITS.max_memory_characters
    max_query_characters: int = DEFAULT_LIMITS.max_query_characters


ObservationsConfig.rules = {
    "store": ENGINE,
    "top_k": count_rule(1_000),
    "min_sim": number_rule(-1, 1, "a number"),
    "rating_min": number_rule(-100, 0, "a number"),
    "rating_max": number_rule(0, 100, "a number"),
    "max_context_characters": count_rule(1_000_000, low=200),
    "max_memory_characters": LIMIT_RULES["max_memory_characters"],
    "max_query_characters": LIMIT_RULES["max_query_characters"],
    **SECRET_RULES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsSettings(ConfiguredSettings):
    """Where the memory is stored, its two models, and all that `ObservationsConfig` has."""

    path: str = ".observations"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    ollama_host: str = DEFAULT
    config: ObservationsConfig = field(default_factory=ObservationsConfig)


ObservationsSettings.rules = {
    "path": PLACE,
    **MODEL_RULES,
    **ObservationsConfig.rules,
}
