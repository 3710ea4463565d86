"""Embeddings from a server that speaks OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import openai

from memstory.models.openai_server import OpenAiServer
from memstory_reference.adapters.embedding.prefixes import profile_of, sent_texts, unit_vectors
from memstory_reference.ports import EmbedderUnavailableError, Purpose, Vectors

BATCH = 64


class OpenAiEmbedder:
    """Asks `model` at `server`; every failure is an `EmbedderUnavailableError` that says what to do."""

    def __init__(self, model: str, server: OpenAiServer) -> None:
        self.model = f"openai:{model}"
        self.dimension: int | None = None
        self.profile = profile_of(model)
        self._name = model
        self._server = server

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension or 0), dtype=np.float32)
        # The protocol refuses an empty text.
        sent = [text or " " for text in sent_texts(self.profile, texts, purpose)]
        # Its own client: an embedder serves many cases and loops, so no caller could close a shared one.
        try:
            async with self._server.client() as client:
                parts = [await self._ask(client, sent[start : start + BATCH]) for start in range(0, len(sent), BATCH)]
        except (openai.APIError, ValueError, OSError) as error:
            raise EmbedderUnavailableError(self._server.reason(error, self._name)) from error
        return np.concatenate(parts)

    async def identity(self) -> str:
        """Return the model's name with its server's address, which is all that the protocol says of a model."""
        return f"{self.model}@{self._server.url}"

    async def _ask(self, client: openai.AsyncOpenAI, sent: Sequence[str]) -> Vectors:
        answer = await client.embeddings.create(model=self._name, input=list(sent), encoding_format="float")
        rows = [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]
        try:
            vectors = unit_vectors(rows, len(sent), self.dimension)
        except ValueError as error:
            raise EmbedderUnavailableError(
                f"{self._server.url} was asked for {self._name}, but {error}. Is it an embedding model?"
            ) from error
        self.dimension = vectors.shape[1]
        return vectors
