"""The reference's embedder for other people's backends: what `memstory.embedders` finds by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memstory.targets.embedders import Purpose as HarnessPurpose
from memstory_reference.composition.embedders import make_embedder
from memstory_reference.ports import Purpose
from memstory_reference.systems.topics.settings import default_topics
from memstory_reference.targets.refusals import in_harness_words

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder


class OfferedEmbedder:
    """An embedder of the reference in the harness's words."""

    def __init__(self, inner: CachedEmbedder) -> None:
        self.model = inner.model
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: HarnessPurpose) -> list[list[float]]:
        """Return one vector a text."""
        with in_harness_words():
            vectors = await self._inner.embed(texts, Purpose(purpose))
        rows: list[list[float]] = vectors.tolist()
        return rows

    async def close(self) -> None:
        """Close the cache; another `embed` opens it again."""
        await self._inner.close()


def minilm() -> OfferedEmbedder:
    """Return all-MiniLM-L6-v2 with this machine's cache before it."""
    with in_harness_words():
        return OfferedEmbedder(make_embedder("minilm", ollama_host=default_topics().ollama_host))
