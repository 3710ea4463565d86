"""The real client against a faithful fake server."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pytest

from memstory_reference.adapters.embedding.ollama_embedder import BATCH, OllamaEmbedder
from memstory_reference.ports import EmbedderUnavailableError, Purpose


def embedder(server: Any, model: str = "nomic-embed-text", **options: Any) -> OllamaEmbedder:
    return OllamaEmbedder(model, server.url, **options)


def inputs(server: Any) -> list[str]:
    return [text for body in server.bodies("/api/embed") for text in body["input"]]


async def test_nomic_gets_its_prefix_for_each_purpose(ollama_server):
    nomic = embedder(ollama_server)
    await nomic.embed(["Elixir"], Purpose.DOCUMENT)
    await nomic.embed(["databases"], Purpose.QUERY)
    assert inputs(ollama_server) == ["search_document: Elixir", "search_query: databases"]


async def test_model_without_profile_gets_raw_text(ollama_server):
    minilm = embedder(ollama_server, "all-minilm")
    await minilm.embed(["Elixir"], Purpose.DOCUMENT)
    assert inputs(ollama_server) == ["Elixir"]


async def test_dimension_is_learned_with_the_first_answer(ollama_server):
    nomic = embedder(ollama_server)
    assert nomic.dimension is None
    vectors = await nomic.embed(["a", "b"], Purpose.QUERY)
    assert (nomic.dimension, vectors.shape, vectors.dtype) == (768, (2, 768), np.float32)


async def test_many_texts_keep_their_order_over_several_requests(ollama_server):
    texts = [f"text {n}" for n in range(2 * BATCH + 1)]
    nomic = embedder(ollama_server)
    together = await nomic.embed(texts, Purpose.DOCUMENT)
    alone = await nomic.embed([texts[-1]], Purpose.DOCUMENT)
    assert [len(body["input"]) for body in ollama_server.bodies("/api/embed")] == [BATCH, BATCH, 1, 1]
    np.testing.assert_allclose(together[-1], alone[0])


async def test_empty_text_has_a_vector(ollama_server):
    minilm = embedder(ollama_server, "all-minilm")
    vectors = await minilm.embed(["", "a"], Purpose.DOCUMENT)
    assert vectors.shape == (2, 384)
    assert "" not in inputs(ollama_server)


async def test_no_texts_ask_nobody(ollama_server):
    nomic = embedder(ollama_server)
    assert len(await nomic.embed([], Purpose.QUERY)) == 0
    assert ollama_server.requests == []


async def test_lone_surrogate_is_sent_as_valid_unicode(ollama_server):
    minilm = embedder(ollama_server, "all-minilm")
    await minilm.embed(["a\ud800b"], Purpose.DOCUMENT)
    assert inputs(ollama_server) == ["a\ufffdb"]


async def test_vectors_have_length_1_whatever_the_server_gives(ollama_server):
    ollama_server.embed = lambda *_: [3.0, 4.0]
    nomic = embedder(ollama_server)
    np.testing.assert_allclose(await nomic.embed(["a"], Purpose.QUERY), [[0.6, 0.8]], rtol=1e-6)


async def test_latest_is_the_same_model_as_no_tag(ollama_server):
    nomic = embedder(ollama_server, "nomic-embed-text:latest")
    assert nomic.model == "nomic-embed-text"


async def test_no_server_says_how_to_start_one():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    nomic = OllamaEmbedder("nomic-embed-text", f"http://127.0.0.1:{port}")
    with pytest.raises(EmbedderUnavailableError, match=rf"127\.0\.0\.1:{port}.*ollama serve"):
        await nomic.embed(["a"], Purpose.QUERY)


async def test_missing_model_says_how_to_pull_it(ollama_server):
    ollama_server.models.clear()
    nomic = embedder(ollama_server)
    with pytest.raises(EmbedderUnavailableError, match=r"ollama pull nomic-embed-text$"):
        await nomic.embed(["a"], Purpose.QUERY)


async def test_chat_model_is_told_from_an_embedding_model(ollama_server):
    gemma = embedder(ollama_server, "gemma3:4b")
    with pytest.raises(EmbedderUnavailableError, match="Is gemma3:4b an embedding model"):
        await gemma.embed(["a"], Purpose.QUERY)


async def test_slow_server_names_the_time_limit(ollama_server):
    ollama_server.delay_seconds = 5
    nomic = embedder(ollama_server, timeout_seconds=0.2)
    with pytest.raises(EmbedderUnavailableError, match=r"within 0\.2 s"):
        await nomic.embed(["a"], Purpose.QUERY)


async def test_broken_server_is_unavailable_and_recovers(ollama_server):
    nomic = embedder(ollama_server)
    ollama_server.fail = (500, "llama runner process has terminated")
    with pytest.raises(EmbedderUnavailableError, match="runner process has terminated"):
        await nomic.embed(["a"], Purpose.QUERY)
    ollama_server.fail = None
    assert (await nomic.embed(["a"], Purpose.QUERY)).shape == (1, 768)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"embeddings": []}, "0 embeddings for 2 texts"),
        ({"embeddings": [[1.0]]}, "1 embeddings for 2 texts"),
        ({"embeddings": [[1.0], [1.0, 0.0]]}, "1 and 2 numbers"),
        ({"embeddings": [[], []]}, "zeros or not finite"),
        ({"embeddings": [[0.0, 0.0], [1.0, 0.0]]}, "zeros or not finite"),
        ({"embeddings": [[float("nan"), 0.0], [1.0, 0.0]]}, "zeros or not finite"),
        ({"embeddings": "none"}, "not a list of embeddings"),
        (["not", "an", "object"], "not a list of embeddings"),
    ],
)
async def test_odd_answer_is_refused_with_its_reason(ollama_server, answer, message):
    ollama_server.change_answer = lambda _: answer
    nomic = embedder(ollama_server)
    with pytest.raises(EmbedderUnavailableError, match=message):
        await nomic.embed(["a", "b"], Purpose.QUERY)


async def test_model_that_changes_its_dimension_is_refused(ollama_server):
    nomic = embedder(ollama_server)
    await nomic.embed(["a"], Purpose.QUERY)
    ollama_server.embed = lambda *_: [1.0, 0.0]
    with pytest.raises(EmbedderUnavailableError, match="2 numbers where 768 were expected"):
        await nomic.embed(["b"], Purpose.QUERY)


async def test_its_identity_is_the_digest_of_its_weights(ollama_server):
    one, other = await embedder(ollama_server).identity(), await embedder(ollama_server, "all-minilm").identity()
    assert one.startswith("nomic-embed-text@")
    assert one.partition("@")[2] != other.partition("@")[2]
    assert await embedder(ollama_server, "nomic-embed-text:latest").identity() == one


async def test_a_model_that_the_server_lacks_has_no_identity(ollama_server):
    with pytest.raises(EmbedderUnavailableError, match="ollama pull gone"):
        await embedder(ollama_server, "gone").identity()


async def test_a_server_that_is_down_has_no_identity():
    with pytest.raises(EmbedderUnavailableError, match="ollama serve"):
        await OllamaEmbedder("nomic-embed-text", "http://127.0.0.1:1").identity()
