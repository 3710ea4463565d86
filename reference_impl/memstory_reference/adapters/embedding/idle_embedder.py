"""An embedder that is a name alone: for reading a store, for which no model has to be loaded or asked."""

from __future__ import annotations

from collections.abc import Sequence

from memstory_reference.adapters.embedding.prefixes import profile_of
from memstory_reference.ports import EmbedderUnavailableError, Purpose, Vectors


class IdleEmbedder:
    """Names the model that a store was made with, and embeds nothing."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.dimension: int | None = None
        self.profile = profile_of(model)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        raise EmbedderUnavailableError(f"{self.model} was not started: this memory was opened to be read")
