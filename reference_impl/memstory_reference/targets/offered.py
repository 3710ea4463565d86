"""What the reference offers to other people's backends, by entry point: chat models for the shim, and embedders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memstory.contract.errors import SetupError
from memstory.contract.models import ChatModel
from memstory.contract.values import Tree
from memstory.models.ollama_address import ollama_host
from memstory.targets.embedders import Purpose as HarnessPurpose
from memstory_reference.composition.chat_models import OFFLINE, make_chat
from memstory_reference.composition.embedders import MINILM, OLLAMA, OPENAI, RANDOM, make_embedder
from memstory_reference.ports import EmbedderUnavailableError, Purpose

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder


class OfferedEmbedder:
    """An embedder of the reference in the harness's words."""

    def __init__(self, inner: CachedEmbedder) -> None:
        self.model = inner.model
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: HarnessPurpose) -> list[list[float]]:
        """Return one vector a text; SetupError where the model's server gives none."""
        try:
            vectors = await self._inner.embed(texts, Purpose(purpose))
        except EmbedderUnavailableError as error:
            # It is not the memory that does not answer.
            raise SetupError(f"the embedder {self.model} gave no vectors: {error}") from error
        rows: list[list[float]] = vectors.tolist()
        return rows

    async def close(self) -> None:
        """Close the cache; another `embed` opens it again."""
        await self._inner.close()


def offline(more: str) -> ChatModel:
    """Return the deterministic stand-in, which compares texts by MiniLM where it can be had, else by their words."""
    if more:
        raise SetupError(f"the chat model 'offline' takes no name behind a colon, as in 'offline:{more}'")
    return make_chat(OFFLINE, ollama_host=ollama_host())


def minilm(more: str, options: Mapping[str, Tree]) -> OfferedEmbedder:
    """Return all-MiniLM-L6-v2 with this machine's cache before it."""
    return _offer(MINILM, more, options)


def random(more: str, options: Mapping[str, Tree]) -> OfferedEmbedder:
    """Return an embedder of vectors by chance: for how long a memory takes, not for what it finds."""
    return _offer(RANDOM, more, options)


def ollama(model: str, options: Mapping[str, Tree]) -> OfferedEmbedder:
    """Return a model of the Ollama server that the option `ollama_host` or the variable OLLAMA_HOST names."""
    return _offer(OLLAMA, model, options)


def openai(model: str, options: Mapping[str, Tree]) -> OfferedEmbedder:
    """Return a model of the server of OpenAI's protocol that OPENAI_BASE_URL names, else of OpenAI's own."""
    return _offer(OPENAI, model, options)


def _offer(kind: str, more: str, options: Mapping[str, Tree]) -> OfferedEmbedder:
    """Return an embedder; a kind that ends with a colon is a server's, and wants the name of a model behind it."""
    is_on_a_server = kind.endswith(":")
    if more and not is_on_a_server:
        raise SetupError(f"the embedder '{kind}' takes no name behind a colon, as in '{kind}:{more}'")
    if is_on_a_server and not more:
        raise SetupError(f"embedder={kind} names no model; allowed: {kind}MODEL")
    host = options.get("ollama_host")
    return OfferedEmbedder(make_embedder(f"{kind}{more}", ollama_host=ollama_host() if host is None else str(host)))
