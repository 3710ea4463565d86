"""Embeddings from an Ollama server."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import cache

import httpx
import numpy as np
import ollama

from memstory_reference.adapters.embedding.prefixes import profile_of, sent_texts, unit_vectors
from memstory_reference.ports import EmbedderUnavailableError, Purpose, Vectors

HOST = "http://127.0.0.1:11434"
TIMEOUT_SECONDS = 120.0
BATCH = 32
"""Texts a request: a processor needs seconds for 32 long ones, so that no request nears the time limit."""


class OllamaEmbedder:
    """Asks `model` at `host`; every failure is an `EmbedderUnavailableError` that says what to type."""

    def __init__(self, model: str, host: str = HOST, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        # `latest` is the tag of a name without one: the same weights, so the same identity.
        self.model = model.removesuffix(":latest")
        self.dimension: int | None = None
        self.profile = profile_of(model)
        self._host = host
        self._timeout_seconds = timeout_seconds

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension or 0), dtype=np.float32)
        # Ollama answers an empty text with no vector at all; a blank has the same tokens, none.
        sent = [text or " " for text in sent_texts(self.profile, texts, purpose)]
        # Its own client: an embedder serves many cases and loops, so no caller could close a shared one.
        async with ollama.AsyncClient(host=self._host, timeout=self._timeout_seconds, verify=_tls()) as client:
            parts = [await self._ask(client, sent[start : start + BATCH]) for start in range(0, len(sent), BATCH)]
        return np.concatenate(parts)

    async def identity(self) -> str:
        """Return the model's name with the digest of its weights, which a server may exchange under the same name.

        Raises:
            EmbedderUnavailableError: the server does not answer, or does not have the model.
        """
        try:
            async with ollama.AsyncClient(host=self._host, timeout=self._timeout_seconds, verify=_tls()) as client:
                listed = await client.list()
        except ollama.ResponseError as error:
            raise self._refusal(error) from error
        except (ConnectionError, httpx.HTTPError) as error:
            raise self._silent(error) from error
        except (ValueError, TypeError) as error:
            raise self._odd("its list of models cannot be read") from error
        digests = {(one.model or "").removesuffix(":latest"): one.digest for one in listed.models}
        if digests.get(self.model) is None:
            raise EmbedderUnavailableError(
                f"Ollama at {self._host} does not have {self.model}. Get it with: ollama pull {self.model}"
            )
        return f"{self.model}@{digests[self.model]}"

    async def _ask(self, client: ollama.AsyncClient, sent: Sequence[str]) -> Vectors:
        try:
            answer = await client.embed(model=self.model, input=sent)
        except ollama.ResponseError as error:
            raise self._refusal(error) from error
        except httpx.TimeoutException as error:
            raise EmbedderUnavailableError(
                f"Ollama at {self._host} gave no embedding within {self._timeout_seconds:g} s. It may still be loading "
                f"{self.model}: see 'ollama ps', then try again or raise the time limit."
            ) from error
        except (ConnectionError, httpx.HTTPError) as error:
            raise self._silent(error) from error
        except (ValueError, TypeError) as error:
            # The client reads the answer as JSON of a known shape.
            raise self._odd("its answer is not a list of embeddings") from error
        return self._vectors(answer.embeddings, len(sent))

    def _vectors(self, embeddings: Sequence[Sequence[float]], count: int) -> Vectors:
        try:
            vectors = unit_vectors(embeddings, count, self.dimension)
        except ValueError as error:
            raise self._odd(str(error)) from error
        self.dimension = vectors.shape[1]
        return vectors

    def _refusal(self, error: ollama.ResponseError) -> EmbedderUnavailableError:
        said = f"Ollama at {self._host} refused: {error.error}"
        if error.status_code == httpx.codes.NOT_FOUND:
            return EmbedderUnavailableError(f"{said}. Get it with: ollama pull {self.model}")
        return EmbedderUnavailableError(
            f"{said} (status {error.status_code}). Is {self.model} an embedding model? See: ollama show {self.model}"
        )

    def _silent(self, error: Exception) -> EmbedderUnavailableError:
        reason = str(error) if isinstance(error, httpx.HTTPError) else "nothing listens there"
        return EmbedderUnavailableError(
            f"Ollama does not answer at {self._host} ({reason}). Start it with: ollama serve"
        )

    def _odd(self, what: str) -> EmbedderUnavailableError:
        return EmbedderUnavailableError(
            f"Ollama at {self._host} was asked for {self.model}, but {what}. Look at it with: ollama show {self.model}"
        )


@cache
def _tls() -> ssl.SSLContext:
    # Made once: it reads every certificate of the machine, which each client would do again.
    return httpx.create_ssl_context()
