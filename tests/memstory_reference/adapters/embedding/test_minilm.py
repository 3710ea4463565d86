"""The model on onnxruntime gives what sentence-transformers gives on torch."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstory_reference.adapters.embedding.minilm import BATCH_TOKENS, MAX_TOKENS, MiniLmEmbedder, batches, pad
from memstory_reference.ports import Purpose

# Made by sentence-transformers 6.2.0 on torch 2.13.0+cpu, in its own environment, from the same weights:
# `SentenceTransformer(folder, device="cpu")` with `max_seq_length = 256`, then
# `encode(texts, batch_size=1, normalize_embeddings=True)`, of which these are the first four columns.
EXPECTED = {
    "My preferred language is Elixir.": [-0.0067837, -0.067278, 0.0233157, -0.0491936],
    "Which programming language do I like?": [-0.0263768, -0.0680898, -0.0160846, -0.0194547],
    "": [-0.1188384, 0.0482988, -0.0025482, -0.0110112],
    "日本語の文章です。": [0.0177573, 0.0886391, 0.0155758, 0.0185202],
    "🙂 naïve CAFÉ": [-0.0064597, 0.0011666, 0.011806, 0.0236237],
    "word " * 400: [-0.0081237, -0.095586, -0.0386731, 0.049662],
}
# The same run: the dot product of the first text with each.
DOTS = [1.0, 0.512297, 0.162923, 0.170297, 0.179444, 0.156901]
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def minilm(minilm_weights):
    return MiniLmEmbedder(minilm_weights)


async def test_vectors_are_those_of_torch(minilm):
    vectors = await minilm.embed(list(EXPECTED), Purpose.DOCUMENT)
    np.testing.assert_allclose(vectors[:, :4], list(EXPECTED.values()), atol=TOLERANCE)
    np.testing.assert_allclose(vectors @ vectors[0], DOTS, atol=TOLERANCE)


async def test_text_alone_and_in_a_batch_is_the_same_vector(minilm):
    together = await minilm.embed(list(EXPECTED), Purpose.DOCUMENT)
    for row, text in zip(together, EXPECTED, strict=True):
        alone = await minilm.embed([text], Purpose.QUERY)
        np.testing.assert_allclose(row, alone[0], atol=TOLERANCE)


async def test_vectors_are_float32_of_length_1(minilm):
    vectors = await minilm.embed(["a", "b c"], Purpose.DOCUMENT)
    assert (vectors.dtype, vectors.shape) == (np.float32, (2, 384))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


async def test_no_texts_give_no_rows(minilm):
    assert (await minilm.embed([], Purpose.QUERY)).shape == (0, 384)


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "nul\x00nul", "\x00", "\n\t ", "\u202eabc", "a" * 5000])
async def test_strange_text_has_a_vector(minilm, text):
    vectors = await minilm.embed([text], Purpose.DOCUMENT)
    assert abs(float(vectors[0] @ vectors[0]) - 1) < TOLERANCE


async def test_nul_and_lone_surrogate_change_nothing(minilm):
    clean, nul, surrogate = await minilm.embed(["tea party", "tea\x00 party", "tea\ud800 party"], Purpose.DOCUMENT)
    np.testing.assert_allclose(nul, clean, atol=TOLERANCE)
    np.testing.assert_allclose(surrogate, clean, atol=TOLERANCE)


async def test_text_beyond_the_limit_is_cut(minilm):
    kept = "word " * (MAX_TOKENS - 2)
    whole, cut = await minilm.embed([kept, kept + "elephant " * 50], Purpose.DOCUMENT)
    np.testing.assert_allclose(cut, whole, atol=TOLERANCE)


async def test_concurrent_first_calls_load_one_model(minilm_weights):
    fresh = MiniLmEmbedder(minilm_weights)
    vectors = await asyncio.gather(*(fresh.embed([f"text {n}"], Purpose.QUERY) for n in range(8)))
    again = await fresh.embed([f"text {n}" for n in range(8)], Purpose.QUERY)
    np.testing.assert_allclose(np.concatenate(vectors), again, atol=TOLERANCE)


def test_torch_is_never_imported(minilm_weights):
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from memstory_reference.adapters.embedding.weights import WeightsFolder\n"
        "from memstory_reference.adapters.embedding.minilm import MiniLmEmbedder\n"
        "from memstory_reference.ports import Purpose\n"
        "embedder = MiniLmEmbedder(WeightsFolder(folder=Path(sys.argv[1])))\n"
        "assert 'onnx' not in sys.modules, 'onnx came before the first text'\n"
        "asyncio.run(embedder.embed(['a'], Purpose.QUERY))\n"
        "assert not {'torch', 'transformers', 'chromadb'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(minilm_weights.folder)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (our own program)
    assert finished.returncode == 0, finished.stderr


@given(st.lists(st.integers(2, MAX_TOKENS), max_size=200))
@settings(deadline=None)
def test_batches_hold_every_row_once_within_the_bound(lengths):
    made = list(batches(lengths))
    assert sorted(row for rows in made for row in rows) == list(range(len(lengths)))
    for rows in made:
        assert len(rows) * max(lengths[row] for row in rows) <= BATCH_TOKENS


def test_padding_is_on_the_right_and_counted():
    feed = pad([[101, 7, 102], [101, 102]])
    assert feed["ids"].tolist() == [[101, 7, 102], [101, 102, 0]]
    assert feed["lengths"].tolist() == [3, 2]
