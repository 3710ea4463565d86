"""What an operator decides about their own pipeline, read once from a file or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from memstory.contract.values import Tree
from memstory_reference.setting_rules import (
    SettingRule,
    check_settings,
    read_mapping,
    read_text,
    text_rule,
    with_ollama,
)
from memstory_reference.systems.pipeline.config import PipelineConfig

_OWN: Mapping[str, SettingRule] = {
    "path": text_rule("a folder"),
    "embedding_model": text_rule("the name of an embedding model"),
    "chat": text_rule("the name of a chat model"),
    "ollama_host": text_rule("an address such as http://127.0.0.1:11434", "http://", "https://"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """Where the memory is stored, its two models, and all that `PipelineConfig` has."""

    path: str = ".pipeline"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = "offline"
    ollama_host: str = "http://127.0.0.1:11434"
    config: PipelineConfig = field(default_factory=PipelineConfig)

    @property
    def folder(self) -> Path:
        """Where the memory is stored, the home folder expanded."""
        return Path(self.path).expanduser()

    def changed(self, values: Mapping[str, Tree], where: str) -> PipelineSettings:
        """Return these settings with `values` in place; InputError names the key and what is allowed."""
        check_settings(values, {**_OWN, **PipelineConfig.rules}, where)
        own = {name: value for name, value in values.items() if name in _OWN}
        config = {name: value for name, value in values.items() if name not in _OWN}
        return replace(self, **own, config=self.config.changed(config, where))


def default_pipeline() -> PipelineSettings:
    """Return the settings where nothing is typed; OLLAMA_HOST, where it is set, says where Ollama answers."""
    return with_ollama(PipelineSettings())


def read_pipeline(file: Path) -> PipelineSettings:
    """Return the settings in `file`, `key: value` lines, with the defaults for what it leaves out."""
    return default_pipeline().changed(read_mapping(read_text(file), str(file)), str(file))
