"""What the reference offers to other people's backends, by entry point: chat models for the shim, and embedders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memstory.contract.errors import SetupError
from memstory.contract.models import ChatModel
from memstory.models.ollama_address import ollama_host
from memstory.targets.embedders import Purpose as HarnessPurpose
from memstory_reference.composition.chat_models import OFFLINE, make_chat
from memstory_reference.composition.embedders import MINILM, RANDOM, make_embedder
from memstory_reference.ports import Purpose
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


def offline(more: str) -> ChatModel:
    """Return the deterministic stand-in, which compares texts by MiniLM where its weights are here."""
    if more:
        raise SetupError(f"the chat model 'offline' takes no name behind a colon, as in 'offline:{more}'")
    return make_chat(OFFLINE, ollama_host=ollama_host())


def minilm() -> OfferedEmbedder:
    """Return all-MiniLM-L6-v2 with this machine's cache before it."""
    with in_harness_words():
        return OfferedEmbedder(make_embedder(MINILM, ollama_host=ollama_host()))


def random() -> OfferedEmbedder:
    """Return an embedder of vectors by chance: for how long a memory takes, not for what it finds."""
    return OfferedEmbedder(make_embedder(RANDOM, ollama_host=ollama_host()))
