"""What an operator decides about their own pipeline, read once from a file or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS, MemoryCharacters, PromptCharacters, QueryCharacters
from memstory_reference.setting_rules import (
    SQL_ENGINE,
    SQLITE,
    SWITCH,
    CheckedSettings,
    Place,
    count_rule,
    null_rule,
    number_rule,
    text_rule,
)

Reranking = Annotated[str | None, null_rule(text_rule("cross-encoder or cross-encoder:MODEL", "cross-encoder"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings(CheckedSettings):
    """The numbers of seed 002 and what it leaves open (PF-2, PF-7, PF-11, PF-15, PF-17).

    `recall_threshold` acts on rows that were imported or stored under another `store_threshold`; working memories are
    recalled without their session for `working_hours`; `sessions_to_compress` of None is half the threshold;
    `cached_embeddings` are kept for each user beside those of stored memories. A text to take in may be longer than a
    memory, which is a chunk of it or an imported row.
    """

    path: Place = ".pipeline"
    store: Annotated[str, SQL_ENGINE] = SQLITE
    reranker: Reranking = None
    max_chunk_tokens: Annotated[int, count_rule(100_000)] = 300
    min_chunk_tokens: Annotated[int, count_rule(100_000, low=0)] = 50
    max_text_characters: Annotated[int, count_rule(100_000_000)] = 1_000_000
    max_memory_characters: MemoryCharacters = DEFAULT_LIMITS.max_memory_characters
    max_query_characters: QueryCharacters = DEFAULT_LIMITS.max_query_characters
    max_prompt_characters: PromptCharacters = DEFAULT_LIMITS.max_prompt_characters
    store_threshold: Annotated[float, number_rule(0, 1, "a number")] = 0.3
    recall_threshold: Annotated[float, number_rule(0, 1, "a number")] = 0.2
    candidates_factor: Annotated[int, count_rule(100)] = 4
    reranker_enabled: Annotated[bool, SWITCH] = False
    max_procedural: Annotated[int, count_rule(1_000, low=0)] = 10
    procedural_share: Annotated[float, number_rule(0, 1, "a share")] = 0.25
    working_hours: Annotated[float, number_rule(0, 100_000, "a number of hours")] = 24.0
    compression_threshold: Annotated[int, count_rule(1_000_000)] = 10
    sessions_to_compress: Annotated[int | None, null_rule(count_rule(1_000_000))] = None
    auto_compress: Annotated[bool, SWITCH] = True
    episodic_date_prefix: Annotated[bool, SWITCH] = False
    cached_embeddings: Annotated[int, count_rule(10_000_000, low=0)] = 10_000

    @property
    def sessions_a_pass(self) -> int:
        """How many sessions one pass compresses: 5 of 10, 2 of 5, 1 of 3, 1 of 1."""
        return self.sessions_to_compress or max(1, self.compression_threshold // 2)

    def merge(self, values: Mapping[str, Json], where: str) -> Self:
        # `slots=True` makes a second class; a bare super() would mean the first one.
        made = super(PipelineSettings, self).merge(values, where)
        if made.min_chunk_tokens > made.max_chunk_tokens:
            raise InputError(
                f"{where}: min_chunk_tokens is {made.min_chunk_tokens}, more than max_chunk_tokens, "
                f"{made.max_chunk_tokens}; lower one or raise the other"
            )
        return made
