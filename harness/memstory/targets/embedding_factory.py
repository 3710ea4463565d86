"""Factories of targets that search by meaning: their embedders are loaded once, and closed with the factory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from memstory.contract.target import Capability, Environment, TargetFactory, Tree
from memstory.targets.embedders import Embedders, TextEmbedder

_PROBE = "How many numbers has a vector?"


class EmbeddingFactory(TargetFactory):
    """Holds the embedders; a subclass says what its targets can do, and makes them."""

    able: ClassVar[frozenset[Capability]]

    def __init__(self, embedders: Embedders | None = None) -> None:
        self._embedders = embedders or Embedders()

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return self.able

    async def stop(self) -> None:
        await self._embedders.close()


async def vector_length(embedder: TextEmbedder, env: Environment) -> int:
    """Return how many numbers a vector has: some stores must know it before there is anything to store."""
    (probe,) = await embedder.embed([next(iter(env.vectors), _PROBE)], "document")
    return len(probe)
