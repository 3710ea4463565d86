"""The real client of OpenAI's protocol asks for embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("openai", reason="the extra openai is not installed")

from memstory.models.openai_server import OpenAiServer
from memstory_reference.adapters.embedding.openai_embedder import BATCH, OpenAiEmbedder
from memstory_reference.ports import EmbedderUnavailableError, Purpose


def embedder(endpoint: Any, model: str = "tiny") -> OpenAiEmbedder:
    return OpenAiEmbedder(model, OpenAiServer(endpoint.url, "none", timeout_seconds=5, retries=0))


async def test_vectors_are_units_in_the_order_of_the_texts(openai_endpoint):
    texts = ["x" * n for n in range(BATCH + 3)]
    tiny = embedder(openai_endpoint)
    vectors = await tiny.embed(texts, Purpose.DOCUMENT)
    assert vectors.shape == (BATCH + 3, 3)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert (np.diff(vectors[1:, 1]) > 0).all()
    assert tiny.dimension == 3
    assert [len(body["input"]) for body in openai_endpoint.bodies("/v1/embeddings")] == [BATCH, 3]


async def test_no_texts_ask_nobody(openai_endpoint):
    assert (await embedder(openai_endpoint).embed([], Purpose.QUERY)).shape == (0, 0)
    assert openai_endpoint.requests == []


@pytest.mark.parametrize(
    "vector",
    [lambda _: [0.0, 0.0], lambda _: [float("nan"), 1.0], lambda text: [1.0] * len(text)],
    ids=["zeros", "nan", "unequal"],
)
async def test_a_vector_that_cannot_be_compared_is_refused(openai_endpoint, vector):
    openai_endpoint.embed = vector
    with pytest.raises(EmbedderUnavailableError, match="embedding"):
        await embedder(openai_endpoint).embed(["a", "bb"], Purpose.DOCUMENT)


async def test_an_unknown_model_is_named(openai_endpoint):
    with pytest.raises(EmbedderUnavailableError, match="huge"):
        await embedder(openai_endpoint, "huge").embed(["a"], Purpose.DOCUMENT)
