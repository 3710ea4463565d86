"""An embedder whose real failures are kept: a system puts them into words, and no story may be judged by these."""

from __future__ import annotations

from collections.abc import Sequence

from memstory_reference.adapters.prefixes import ProfiledEmbedder
from memstory_reference.errors import UnavailableError
from memstory_reference.ports import Purpose, Vectors


class WitnessedEmbedder:
    """Asks `inner` and keeps what made it unavailable in `failures`; what a story breaks on purpose lies above it."""

    def __init__(self, inner: ProfiledEmbedder) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self.failures: list[UnavailableError] = []
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        try:
            vectors = await self._inner.embed(texts, purpose)
        except UnavailableError as error:
            self.failures.append(error)
            raise
        self.dimension = self._inner.dimension
        return vectors
