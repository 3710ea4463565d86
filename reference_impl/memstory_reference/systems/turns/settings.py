"""What an operator decides about the turns memory, read once from a file or the command line."""

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
from memstory_reference.systems.turns.config import TurnsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsSettings(ConfiguredSettings):
    """`store` is a folder, or the URL of a Postgres database that several processes may share."""

    store: str = ".turns"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    ollama_host: str = DEFAULT
    config: TurnsConfig = field(default_factory=TurnsConfig)

    @property
    def is_postgres(self) -> bool:
        """Whether the store is a database that others may use at the same time."""
        return "://" in self.store

    @property
    def folder(self) -> Path:
        """Where a store on this machine lies, the home folder expanded."""
        return Path(self.store).expanduser()


def default_turns() -> TurnsSettings:
    """Return the settings as they are without a file; OLLAMA_HOST, where it is set, says where Ollama answers."""
    return with_ollama(TurnsSettings())


def read_turns(file: Path) -> TurnsSettings:
    """Return the settings in `file`, with the defaults for what it leaves out."""
    return default_turns().changed(read_mapping(read_text(file), str(file)), str(file))


TurnsSettings.rules = {
    "store": text_rule("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE"),
    **MODEL_RULES,
    **TurnsConfig.rules,
}
