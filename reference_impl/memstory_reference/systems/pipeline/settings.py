"""What an operator decides about their own pipeline, read once from a file or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS, LIMIT_RULES
from memstory_reference.setting_rules import (
    MODEL_RULES,
    PLACE,
    SECRET_RULES,
    SQL_ENGINE,
    SQLITE,
    SWITCH,
    CheckedSettings,
    ConfiguredSettings,
    count_rule,
    null_rule,
    number_rule,
    text_rule,
)
from memstory_reference.text.secret_guard import SecretPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig(SecretPolicy, CheckedSettings):
    """The numbers of seed 002 and what it leaves open (PF-2, PF-7, PF-11, PF-15, PF-17).

    `recall_threshold` acts on rows that were imported or stored under another `store_threshold`; working memories are
    recalled without their session for `working_hours`; `sessions_to_compress` of None is half the threshold;
    `cached_embeddings` are kept for each user beside those of stored memories. A text to take in may be longer than a
    memory, which is a chunk of it or an imported row.
    """

    max_chunk_tokens: int = 300
    min_chunk_tokens: int = 50
    max_text_characters: int = 1_000_000
    max_memory_characters: int = DEFAULT_LIMITS.max_memory_characters
    max_query_characters: int = DEFAULT_LIMITS.max_query_characters
    max_prompt_characters: int = DEFAULT_LIMITS.max_prompt_characters
    store_threshold: float = 0.3
    recall_threshold: float = 0.2
    candidates_factor: int = 4
    reranker_enabled: bool = False
    max_procedural: int = 10
    procedural_share: float = 0.25
    working_hours: float = 24.0
    compression_threshold: int = 10
    sessions_to_compress: int | None = None
    auto_compress: bool = True
    episodic_date_prefix: bool = False
    cached_embeddings: int = 10_000

    @property
    def sessions_a_pass(self) -> int:
        """How many sessions one pass compresses: 5 of 10, 2 of 5, 1 of 3, 1 of 1."""
        return self.sessions_to_compress or max(1, self.compression_threshold // 2)

    def merge(self, values: Mapping[str, Json], where: str) -> Self:
        """Return this configuration with `values` in place; InputError names the key and what is allowed."""
        # `slots=True` makes a second class; a bare super() would mean the first one.
        made = super(PipelineConfig, self).merge(values, where)
        if made.min_chunk_tokens > made.max_chunk_tokens:
            raise InputError(
                f"{where}: min_chunk_tokens is {made.min_chunk_tokens}, more than max_chunk_tokens, "
                f"{made.max_chunk_tokens}; lower one or raise the other"
            )
        return made


PipelineConfig.rules = {
    "max_chunk_tokens": count_rule(100_000),
    "min_chunk_tokens": count_rule(100_000, low=0),
    "max_text_characters": count_rule(100_000_000),
    "max_memory_characters": LIMIT_RULES["max_memory_characters"],
    "max_query_characters": LIMIT_RULES["max_query_characters"],
    "max_prompt_characters": LIMIT_RULES["max_prompt_characters"],
    **SECRET_RULES,
    "store_threshold": number_rule(0, 1, "a number"),
    "recall_threshold": number_rule(0, 1, "a number"),
    "candidates_factor": count_rule(100),
    "reranker_enabled": SWITCH,
    "max_procedural": count_rule(1_000, low=0),
    "procedural_share": number_rule(0, 1, "a share"),
    "working_hours": number_rule(0, 100_000, "a number of hours"),
    "compression_threshold": count_rule(1_000_000),
    "sessions_to_compress": null_rule(count_rule(1_000_000)),
    "auto_compress": SWITCH,
    "episodic_date_prefix": SWITCH,
    "cached_embeddings": count_rule(10_000_000, low=0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings(ConfiguredSettings):
    """Where the memory is stored and by which engine, its models and a re-ranker, and all that `PipelineConfig` has."""

    path: str = ".pipeline"
    store: str = SQLITE
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    reranker: str | None = None
    ollama_host: str = "http://127.0.0.1:11434"
    config: PipelineConfig = field(default_factory=PipelineConfig)


PipelineSettings.rules = {
    "path": PLACE,
    "store": SQL_ENGINE,
    **MODEL_RULES,
    "reranker": null_rule(text_rule("cross-encoder or cross-encoder:MODEL", "cross-encoder")),
    **PipelineConfig.rules,
}
