"""Embedding models that the targets of one worker share: weights are dear to load, and never change."""

from __future__ import annotations

from memstory_reference import bootstrap
from memstory_reference.adapters.prefixes import ProfiledEmbedder


class SharedEmbedders:
    """Makes each embedder once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], ProfiledEmbedder] = {}

    def make(self, name: str, ollama_host: str) -> ProfiledEmbedder:
        """Return the embedder of this name; raises as `bootstrap.make_embedder` does."""
        key = (name, ollama_host)
        if key not in self._made:
            self._made[key] = bootstrap.make_embedder(name, ollama_host=ollama_host)
        return self._made[key]
