"""The reference's embedder for other people's backends: what `memstory.embedders` finds by entry point."""

from __future__ import annotations

from collections.abc import Sequence

from memstory.embedders import Purpose as HarnessPurpose
from memstory_reference import bootstrap
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.settings import default_topics
from memstory_reference.targets.refusals import in_harness_words


class OfferedEmbedder:
    """An embedder of the reference in the harness's words."""

    def __init__(self, inner: Embedder) -> None:
        self.model = inner.model
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: HarnessPurpose) -> list[list[float]]:
        """Return one vector a text."""
        with in_harness_words():
            vectors = await self._inner.embed(texts, Purpose(purpose))
        rows: list[list[float]] = vectors.tolist()
        return rows


def minilm() -> OfferedEmbedder:
    """Return all-MiniLM-L6-v2 with this machine's cache before it."""
    with in_harness_words():
        return OfferedEmbedder(bootstrap.make_embedder("minilm", ollama_host=default_topics().ollama_host))
