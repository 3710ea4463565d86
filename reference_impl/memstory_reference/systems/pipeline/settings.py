"""What an operator decides about their own pipeline, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from memstory_reference.setting_rules import (
    MODEL_RULES,
    ConfiguredSettings,
    null_rule,
    text_rule,
)
from memstory_reference.systems.pipeline.config import PipelineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings(ConfiguredSettings):
    """Where the memory is stored, its two models and a re-ranker, and all that `PipelineConfig` has."""

    path: str = ".pipeline"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    reranker: str | None = None
    ollama_host: str = "http://127.0.0.1:11434"
    config: PipelineConfig = field(default_factory=PipelineConfig)


PipelineSettings.rules = {
    "path": text_rule("a folder"),
    **MODEL_RULES,
    "reranker": null_rule(text_rule("cross-encoder or cross-encoder:MODEL", "cross-encoder")),
    **PipelineConfig.rules,
}
