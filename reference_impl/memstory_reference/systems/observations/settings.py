"""What an operator decides about their own observations, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from memstory.models.ollama_address import DEFAULT
from memstory_reference.setting_rules import (
    MODEL_RULES,
    ConfiguredSettings,
    text_rule,
)
from memstory_reference.systems.observations.config import ObservationsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsSettings(ConfiguredSettings):
    """Where the memory is stored, its two models, and all that `ObservationsConfig` has."""

    path: str = ".observations"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    ollama_host: str = DEFAULT
    config: ObservationsConfig = field(default_factory=ObservationsConfig)


ObservationsSettings.rules = {
    "path": text_rule("the path of a folder"),
    **MODEL_RULES,
    **ObservationsConfig.rules,
}
