"""The chosen embedder for libraries that call theirs in their own thread and wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memstory.targets.embedders import Purpose, TextEmbedder


class WaitedEmbedder:
    """Made in the event loop, called outside of it."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder
        self._loop = asyncio.get_running_loop()

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return one vector a text."""
        return asyncio.run_coroutine_threadsafe(self._embed(texts, purpose), self._loop).result()

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        return await self._embedder.embed(texts, purpose)
