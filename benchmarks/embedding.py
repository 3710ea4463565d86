"""How fast texts become vectors: `python benchmarks/embedding.py`.

Prints texts per second of CPU time for MiniLmEmbedder and for chromadb's default embedding function, their ratio on
texts of 10 and 60 tokens in the same run, and the time of one hit in the cache.

chromadb's function needs its own model file in its cache folder. Where that is missing, its own code (its
tokenizer settings, batches and pooling) runs over our graph instead, which is no slower than its file; the output
says so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tokenizers import Tokenizer

from memstory.contract.cache_folder import cache_folder
from memstory_reference.adapters.embedding import minilm, minilm_graph, weights
from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder
from memstory_reference.ports import Purpose

WANTED = {10: 20.0, 60: 4.0}
"""Tokens a text: how many times faster than chromadb's function."""

WANTED_HIT_MICROSECONDS = 50.0
WORDS = "memory user project deadline coffee language database meeting budget clock office update search story".split()  # noqa: SIM905  (a list reads worse)


class ChromaOverOurGraph(ONNXMiniLM_L6_V2):  # type: ignore[misc]  (chromadb is not typed)
    """chromadb's function with our weights: all that is its own, but the session."""

    def __init__(self, found: weights.WeightsFolder) -> None:
        super().__init__()
        self._session = _hidden_session(found)
        self._tokenizer = Tokenizer.from_file(str(found.tokenizer))
        # As chromadb sets it up, in its cached property `tokenizer`.
        self._tokenizer.enable_truncation(max_length=256)
        self._tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=256)  # noqa: S106  (a token of text)

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def model(self) -> ChromaOverOurGraph:
        return self

    def run(self, _: None, feed: dict[str, NDArray[np.int64]]) -> Sequence[Any]:
        lengths = feed["attention_mask"].sum(axis=1)
        ours = {"ids": feed["input_ids"].astype(np.int32), "lengths": lengths.astype(np.int32)}
        return self._session.run(["hidden"], ours)

    def __call__(self, texts: Sequence[str]) -> Any:
        return self._forward(list(texts))


def _hidden_session(found: weights.WeightsFolder) -> onnxruntime.InferenceSession:
    model, tensors = minilm_graph.build(found.tensors)
    model.graph.output.append(helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["n", "tokens", 384]))
    options = onnxruntime.SessionOptions()  # as chromadb has them: the defaults
    over = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    options.add_external_initializers(list(tensors), [over(tensor, minilm_graph.FLOAT) for tensor in tensors.values()])
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session.kept = tensors  # the session reads them where they lie
    return session


def chroma_function(found: weights.WeightsFolder) -> tuple[Callable[[Sequence[str]], Any], str]:
    """Return chromadb's default function, or its code over our graph, and what it is."""
    folder = Path(ONNXMiniLM_L6_V2.DOWNLOAD_PATH) / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    if (folder / "model.onnx").is_file():
        return ONNXMiniLM_L6_V2(), "chromadb's default function"
    return ChromaOverOurGraph(found), "chromadb's code OVER OUR GRAPH (its own model file is not on this machine)"


def texts_of(tokens: int, count: int) -> list[str]:
    """Return texts of exactly `tokens` tokens with the two that the tokenizer adds."""
    rng = np.random.default_rng(tokens)
    return [" ".join(rng.choice(WORDS, size=tokens - 2)) for _ in range(count)]


def texts_per_cpu_second(embed: Callable[[Sequence[str]], Any], texts: Sequence[str], repeats: int) -> float:
    """Return the best of some runs: this machine is shared, and noise only ever slows."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        embed(texts)
        best = min(best, time.process_time() - start)
    return len(texts) / best


def compare(found: weights.WeightsFolder, repeats: int) -> bool:
    """Print the ratios; return whether they are as wanted."""
    ours = minilm.MiniLmEmbedder(found)
    theirs, name = chroma_function(found)
    print(f"against: {name}")
    with asyncio.Runner() as runner:

        def embed(texts: Sequence[str]) -> NDArray[np.float32]:
            return runner.run(ours.embed(texts, Purpose.DOCUMENT))

        check = texts_of(30, 4)
        difference = float(np.abs(embed(check) - np.array(theirs(check))).max())
        print(f"largest difference between the two on 4 texts: {difference:.1e}")
        enough = difference < 1e-4  # noqa: PLR2004  (they are the same model)
        for tokens, wanted in WANTED.items():
            fast = texts_per_cpu_second(embed, texts_of(tokens, 320), repeats)
            slow = texts_per_cpu_second(theirs, texts_of(tokens, 32), repeats)
            enough &= fast / slow >= wanted
            print(
                f"{tokens} tokens: {fast:.0f} against {slow:.1f} texts/CPU s: {fast / slow:.1f}x (wanted {wanted:g}x)"
            )
    return enough


def cache_hits(repeats: int) -> bool:
    """Print what a hit costs; return whether it is as wanted."""
    texts = texts_of(60, 500)
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        cached = CachedEmbedder(RandomEmbedder(), Path(folder) / "cache.sqlite3")
        runner.run(cached.embed(texts, Purpose.DOCUMENT))
        batched = _best(lambda: runner.run(cached.embed(texts, Purpose.DOCUMENT)), repeats) / len(texts)
        single = _best(lambda: runner.run(_one_by_one(cached, texts)), repeats) / len(texts)
        runner.run(cached.close())
    wanted = WANTED_HIT_MICROSECONDS
    print(f"a cache hit: {batched * 1e6:.1f} us in a batch, {single * 1e6:.1f} us alone (wanted {wanted:g})")
    return max(batched, single) * 1e6 <= wanted


class RandomEmbedder(minilm.MiniLmEmbedder):
    """Fills the cache at no cost."""

    def __init__(self) -> None:
        super().__init__(weights.WeightsFolder(folder=Path()))

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        vectors = np.random.default_rng(1).normal(size=(len(texts), 384)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def _one_by_one(cached: CachedEmbedder, texts: Sequence[str]) -> None:
    for text in texts:
        await cached.embed([text], Purpose.DOCUMENT)


def _best(work: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    """Run both; the exit code is 1 if a figure is not as wanted."""
    parser = argparse.ArgumentParser(description="Embedding speed against chromadb's default function.")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, of which the best counts")
    repeats = parser.parse_args().repeats
    found = weights.find_weights(cache_folder(os.environ))
    enough = [compare(found, repeats), cache_hits(5 * repeats)]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main())
