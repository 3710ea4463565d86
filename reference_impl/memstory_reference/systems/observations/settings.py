"""What an operator decides about their own observations, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from memstory_reference.input_checks import DEFAULT_LIMITS, MemoryCharacters, QueryCharacters
from memstory_reference.setting_rules import ENGINE, SQLITE, CheckedSettings, Place, count_rule, number_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsSettings(CheckedSettings):
    """`min_sim` is the cosine below which only keywords admit an observation; ratings lie within their two limits.

    `store` is where the vectors are: in a file of our own, or in Chroma, while texts and words are in SQLite; or in
    Postgres with all the rest.
    `max_context_characters` is the most that a planner gets at once.
    """

    path: Place = ".observations"
    store: Annotated[str, ENGINE] = SQLITE
    top_k: Annotated[int, count_rule(1_000)] = 3
    min_sim: Annotated[float, number_rule(-1, 1, "a number")] = 0.30
    rating_min: Annotated[float, number_rule(-100, 0, "a number")] = -2.0
    rating_max: Annotated[float, number_rule(0, 100, "a number")] = 2.0
    max_context_characters: Annotated[int, count_rule(1_000_000, low=200)] = 20_000
    max_memory_characters: MemoryCharacters = DEFAULT_LIMITS.max_memory_characters
    max_query_characters: QueryCharacters = DEFAULT_LIMITS.max_query_characters
