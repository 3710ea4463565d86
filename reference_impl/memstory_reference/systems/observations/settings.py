"""What an operator decides about their own observations, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from memstory.models.ollama_address import DEFAULT
from memstory_reference.setting_rules import (
    MODEL_RULES,
    ConfiguredSettings,
    read_mapping,
    read_text,
    text_rule,
    with_ollama,
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

    @property
    def folder(self) -> Path:
        """Where the memory is stored, the home folder expanded."""
        return Path(self.path).expanduser()


def default_observations() -> ObservationsSettings:
    """Return the settings as they are without a file; OLLAMA_HOST, where it is set, says where Ollama answers."""
    return with_ollama(ObservationsSettings())


def read_observations(file: Path) -> ObservationsSettings:
    """Return the settings in `file`, with the defaults for what it leaves out."""
    return default_observations().changed(read_mapping(read_text(file), str(file)), str(file))


ObservationsSettings.rules = {
    "path": text_rule("the path of a folder"),
    **MODEL_RULES,
    **ObservationsConfig.rules,
}
