"""What an operator decides about the layers memory, read once from a file or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from memstory_reference.ollama_address import ollama_url
from memstory_reference.ports import Json
from memstory_reference.setting_rules import Rule, check, mapping, read_text, text
from memstory_reference.systems.layers.config import LayersConfig

NO_EMBEDDER = "none"
RULES = "offline"
OLLAMA_HOST = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersSettings:
    """`store` is a folder, or the URL of a Postgres database that several processes may share.

    The embedder `none` ranks by words alone; the chat `offline` extracts, decides and replies by documented rules.
    """

    store: str = ".layers"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = RULES
    ollama_host: str = OLLAMA_HOST
    config: LayersConfig = field(default_factory=LayersConfig)

    @property
    def is_postgres(self) -> bool:
        """Whether the store is a database that others may use at the same time; other URLs its parser refuses."""
        return "://" in self.store

    @property
    def place(self) -> str:
        """Where the memory lies, as it may be shown: a URL may hold a password."""
        return "Postgres" if self.is_postgres else self.store

    def changed(self, values: Mapping[str, Json], where: str) -> LayersSettings:
        """Return these settings with `values` in place; InputError names `where`, the key and what is allowed."""
        own = {key: value for key, value in values.items() if key not in _CONFIG}
        check(own, _RULES, where)
        inner = {key: value for key, value in values.items() if key in _CONFIG}
        return replace(self, **own, config=self.config.changed(inner, where))


def default_layers() -> LayersSettings:
    """Return the settings as they are without a file; OLLAMA_HOST, where it is set, says where Ollama answers."""
    return replace(LayersSettings(), ollama_host=ollama_url() or OLLAMA_HOST)


def read_layers(file: Path) -> LayersSettings:
    """Return the settings in `file`, with the defaults for what it leaves out."""
    return default_layers().changed(mapping(read_text(file), str(file)), str(file))


_CONFIG = frozenset(one.name for one in fields(LayersConfig))

_RULES: Mapping[str, Rule] = {
    "store": text("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE"),
    "embedding_model": text("all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME or none"),
    "chat": text("offline, ollama:NAME, record:NAME@FILE or replay:FILE"),
    "ollama_host": text("an address such as http://127.0.0.1:11434", "http://", "https://"),
    # Named here so that a misspelt one finds its neighbour; what they allow, their configuration says.
    **{name: Rule("see docs/explanation/layers.md", lambda _: True) for name in sorted(_CONFIG)},
}
