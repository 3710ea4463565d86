"""all-MiniLM-L6-v2 on onnxruntime: 384 dimensions, the same as sentence-transformers gives, without torch."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memstory_reference.adapters.embedding.prefixes import profile_of, sent_texts
from memstory_reference.adapters.embedding.weights import MODEL, WeightsFolder
from memstory_reference.ports import Purpose, Vectors

MAX_TOKENS = 256
BATCH_TOKENS = 512
"""Padded tokens a batch: more would leave the processor's cache."""

MAX_CHARACTERS = 100_000
"""Read of a text at most; 256 tokens are over long before, but the tokenizer would read on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model in memory. `session` reads `tensors` where they lie, so they must live as long as it does."""

    tokenizer: Tokenizer
    session: onnxruntime.InferenceSession
    tensors: Mapping[str, NDArray[np.generic]]


class MiniLmEmbedder:
    """Texts to vectors on this machine's processor; the model is loaded with the first text."""

    def __init__(self, weights: WeightsFolder, *, threads: int | None = None) -> None:
        self.model = MODEL
        self.dimension: int | None = 384
        self.profile = profile_of(MODEL)
        self._weights = weights
        self._threads = threads or _own_processors()
        self._loading = threading.Lock()
        self._loaded: LoadedModel | None = None

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if not texts:
            return np.empty((0, 384), dtype=np.float32)
        return await asyncio.to_thread(self._embed, sent_texts(self.profile, texts, purpose))

    def _embed(self, texts: Sequence[str]) -> Vectors:
        model = self._load()
        # One by one: `encode_batch` starts threads, which a later fork does not survive; it saves 1% of the time.
        tokens = [model.tokenizer.encode(text[:MAX_CHARACTERS]).ids for text in texts]
        vectors = np.empty((len(texts), 384), dtype=np.float32)
        for rows in batches([len(ids) for ids in tokens]):
            vectors[rows] = model.session.run(["vectors"], pad([tokens[row] for row in rows]))[0]
        return vectors

    def _load(self) -> LoadedModel:
        with self._loading:
            if self._loaded is None:
                self._loaded = load_model(self._weights, self._threads)
            return self._loaded


def load_model(weights: WeightsFolder, threads: int) -> LoadedModel:
    """Return the model, ready to run on `threads` threads."""
    # Only who runs the model pays for importing `onnx`.
    from memstory_reference.adapters.embedding import minilm_graph  # noqa: PLC0415

    model, tensors = minilm_graph.build(weights.tensors)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that spin while they wait take the processor from the rest of the program.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # This call keeps each array where it is, in the mapped file for the most part; `ortvalue_from_numpy` copies.
    over = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    values = [over(tensor, minilm_graph.FLOAT) for tensor in tensors.values()]
    options.add_external_initializers(list(tensors), values)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return LoadedModel(tokenizer=_tokenizer(weights), session=session, tensors=tensors)


def _tokenizer(weights: WeightsFolder) -> Tokenizer:
    # As shipped it would cut and pad to 128.
    tokenizer = Tokenizer.from_file(str(weights.tokenizer))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of like length, longest first, so that a batch has at most `BATCH_TOKENS` with its padding.

    >>> list(batches([3, 500, 3, 200]))
    [[1], [3, 0], [2]]
    """
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if rows and (len(rows) + 1) * lengths[rows[0]] > BATCH_TOKENS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def pad(tokens: Sequence[Sequence[int]]) -> dict[str, NDArray[np.int32]]:
    """Return what the graph reads: token ids padded on the right, and how many of each row are real."""
    lengths = np.array([len(row) for row in tokens], dtype=np.int32)
    ids = np.zeros((len(tokens), int(lengths.max())), dtype=np.int32)
    for row, values in zip(ids, tokens, strict=True):
        row[: len(values)] = values
    return {"ids": ids, "lengths": lengths}


def _own_processors() -> int:
    # A container may own fewer processors than the machine has; more than 4 threads do not pay for small batches.
    owned = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(owned, 4)
