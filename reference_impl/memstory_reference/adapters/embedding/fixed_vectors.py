"""Vectors without a model: from a table, for exact similarities, by words, by chance, for measuring times, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memstory.contract.texts import nearest
from memstory.models.word_vectors import DIMENSION, word_vector
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, profile_of
from memstory_reference.errors import InputError, UnknownTextError
from memstory_reference.ports import EmbedderUnavailableError, Purpose, Vectors

UNIT_TOLERANCE = 1e-6
RANDOM_DIMENSION = 384


class FixedVectors:
    """Returns the vector that stands for a text, at length 1; a text without one is an error, never a guess.

    Texts are given without prefix. A text given with the profile's prefix serves that purpose alone.
    """

    def __init__(self, vectors: Mapping[str, Sequence[float]], *, profile: Profile = NO_PREFIXES) -> None:
        if not vectors:
            raise InputError("`vectors:` is empty: give at least one text with its numbers")
        self._vectors = {text: _unit(text, numbers) for text, numbers in vectors.items()}
        sizes = {text: len(numbers) for text, numbers in self._vectors.items()}
        dimension = next(iter(sizes.values()))
        for text, size in sizes.items():
            if size != dimension:
                raise InputError(f"`vectors:` {text!r} has {size} numbers, the first text has {dimension}")
        self.model = f"fixed-{dimension}"
        self.dimension: int | None = dimension
        self.profile = profile

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = [self._row(text, purpose) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.dimension or 0)

    def _row(self, text: str, purpose: Purpose) -> NDArray[np.float32]:
        row = self._vectors.get(self.profile.model_input(text, purpose), self._vectors.get(text))
        if row is None:
            near = nearest(text, self._vectors)
            hint = f" The nearest that has one: {near!r}." if near else ""
            raise UnknownTextError(f"No fixed vector for {text!r}: add it under `vectors:`.{hint}")
        return row


class RandomVectors:
    """Draws a vector of length 1 for each text, always the same one; two texts have nothing in common."""

    model = f"random-{RANDOM_DIMENSION}"
    profile = NO_PREFIXES

    def __init__(self) -> None:
        self.dimension: int | None = RANDOM_DIMENSION

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        drawn = np.empty((len(texts), RANDOM_DIMENSION), dtype=np.float32)
        for row, text in zip(drawn, texts, strict=True):
            seed = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
            np.random.Generator(np.random.SFC64(seed)).standard_normal(out=row, dtype=np.float32)
        unit: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return unit


class CountedWords:
    """Returns vectors that are nearer the more words two texts share: no weights, and no sense."""

    model = f"words-{DIMENSION}"
    profile = NO_PREFIXES

    def __init__(self) -> None:
        self.dimension: int | None = DIMENSION

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return np.array([word_vector(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)


class IdleEmbedder:
    """Names the model that a store was made with, and embeds nothing."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.dimension: int | None = None
        self.profile = profile_of(model)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        raise EmbedderUnavailableError(f"{self.model} was not started: this memory was opened to be read")


def _unit(text: str, numbers: Sequence[float]) -> NDArray[np.float32]:
    length = math.hypot(*numbers)
    if not numbers or not math.isfinite(length):
        raise InputError(f"`vectors:` {text!r} needs finite numbers, found {list(numbers)}")
    # Numbers that have length 1 already stay as typed, so that what a story says is what it gets; zeros stay, too, for
    # a model may answer with them.
    scale = 1.0 if abs(length - 1) <= UNIT_TOLERANCE or length == 0 else length
    return np.array([number / scale for number in numbers], dtype=np.float32)
