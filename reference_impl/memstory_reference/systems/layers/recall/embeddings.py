"""Vectors where there are any: none in incognito, and none while the embedder is down (CF-5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memstory_reference.ports import Embedder, EmbedderUnavailableError, Purpose
from memstory_reference.storage.checked_embedder import CheckedEmbedder

Vector = NDArray[np.float32] | None

MODEL_OF_NONE = "none"


class Embeddings:
    """An embedding provider that may be null; what has no vector is found by its words, and embedded later."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = None if embedder is None else CheckedEmbedder(embedder)
        self.failures = 0

    @property
    def model(self) -> str:
        """Return the model's name, `none` for the null provider."""
        return MODEL_OF_NONE if self._embedder is None else self._embedder.model

    async def of_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, None for each where there is none to be had."""
        return await self._embed(texts, Purpose.DOCUMENT)

    async def of_query(self, text: str) -> Vector:
        """Return the vector of a question, None where there is none to be had."""
        return (await self._embed([text], Purpose.QUERY))[0]

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        if self._embedder is None or not texts:
            return [None] * len(texts)
        try:
            return [*await self._embedder.embed(texts, purpose)]
        except EmbedderUnavailableError:
            self.failures += 1
            return [None] * len(texts)
