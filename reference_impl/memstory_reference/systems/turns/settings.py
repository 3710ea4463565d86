"""What an operator decides about the turns memory, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from memstory.models.ollama_address import DEFAULT
from memstory_reference.setting_rules import (
    MODEL_RULES,
    ConfiguredSettings,
    text_rule,
)
from memstory_reference.systems.turns.config import TurnsConfig


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
