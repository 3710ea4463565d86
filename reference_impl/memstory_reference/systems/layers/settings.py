"""What an operator decides about the layers memory, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from memstory.models.ollama_address import DEFAULT
from memstory_reference.setting_rules import (
    MODEL_RULES,
    ConfiguredSettings,
    SettingRule,
    text_rule,
)
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.modes import MemoryMode, is_mode, parse_mode

NO_EMBEDDER = "none"
RULES = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersSettings(ConfiguredSettings):
    """`store` is a folder, or the URL of a Postgres database that several processes may share; `mode` says how durable.

    The embedder `none` ranks by words alone; the chat `offline` extracts, decides and replies by documented rules.
    """

    place = "store"

    store: str = ".layers"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = RULES
    ollama_host: str = DEFAULT
    mode: str = MemoryMode.LOCAL
    config: LayersConfig = field(default_factory=LayersConfig)

    @property
    def memory_mode(self) -> MemoryMode:
        """How durable the memory is."""
        return parse_mode(self.mode)


LayersSettings.rules = {
    "store": text_rule("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE"),
    **MODEL_RULES,
    "embedding_model": text_rule("all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME, openai:NAME or none"),
    "mode": SettingRule(f"{', '.join(MemoryMode)} or guest", is_mode),
    **LayersConfig.rules,
}
