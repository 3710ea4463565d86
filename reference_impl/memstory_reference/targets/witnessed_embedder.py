"""An embedder that is watched: how long it takes is told, and its real failures are kept.

A system puts failures into words, and no story may be judged by these.
"""

from __future__ import annotations

from collections.abc import Sequence

from memstory.embedding_time import announce, embedding
from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
from memstory_reference.errors import UnavailableError
from memstory_reference.ports import Purpose, Vectors


class WitnessedEmbedder:
    """Asks `inner` and keeps what made it unavailable in `failures`; what a story breaks on purpose lies above it.

    It is made while a target is opened, and then says that the target's embedding is timed.
    """

    def __init__(self, inner: ProfiledEmbedder) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self.failures: list[UnavailableError] = []
        self._inner = inner
        announce()

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        try:
            with embedding():
                vectors = await self._inner.embed(texts, purpose)
        except UnavailableError as error:
            self.failures.append(error)
            raise
        self.dimension = self._inner.dimension
        return vectors
