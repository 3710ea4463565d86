"""Embedding models that the targets of one worker share: weights are dear to load, and never change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from memstory.target import TargetFactory
from memstory_reference.composition.embedders import make_embedder

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder


class SharedEmbedders:
    """Makes each embedder once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], CachedEmbedder] = {}

    def make(self, name: str, ollama_host: str) -> CachedEmbedder:
        """Return the embedder of this name; raises as `make_embedder` does."""
        key = (name, ollama_host)
        if key not in self._made:
            self._made[key] = make_embedder(name, ollama_host=ollama_host)
        return self._made[key]

    async def close(self) -> None:
        """Close what the embedders keep open."""
        for embedder in self._made.values():
            await embedder.close()


class EmbeddingFactory(TargetFactory):
    """A factory whose targets share their embedders, to be closed with it."""

    # Not onnxruntime: its import starts a thread and opens a database.
    preload: ClassVar[Sequence[str]] = (
        "memstory_reference.adapters.vectors.chroma",
        "memstory_reference.adapters.embedding.embedding_cache",
        "memstory_reference.adapters.offline_chat",
        "chromadb_rust_bindings",
        "tokenizers",
    )

    def __init__(self) -> None:
        self._embedders = SharedEmbedders()

    async def stop(self) -> None:
        await self._embedders.close()
