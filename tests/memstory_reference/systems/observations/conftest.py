"""What the tests of the observations system share: a memory on word vectors, whose embedder a test can break."""

import zlib
from collections import deque
from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest

from memstory_reference.adapters.vectors.exact_store import open_exact_file
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.observations_store import observations_in_file
from memstory_reference.systems.observations.settings import ObservationsSettings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DIMENSION = 256


class WordEmbedder:
    """A vector of the words of a text; `broken` is answered instead, once each."""

    def __init__(self):
        self.model, self.dimension, self.broken, self.texts = "words", DIMENSION, deque(), []

    async def embed(self, texts, purpose):
        self.texts += texts
        if self.broken:
            return np.array([self.broken.popleft()] * len(texts), np.float32)
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", " ").replace("?", " ").split():
                row[zlib.crc32(word.encode()) % DIMENSION] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)


class StandingClock:
    def now(self):
        return NOON

    async def sleep_until(self, moment):
        raise AssertionError(moment)


@pytest.fixture
def words():
    return WordEmbedder()


@pytest.fixture
def run_of():
    """`run_of(id, narrative, …)` makes an observation."""

    def make(identifier, narrative, **fields):
        fields = {"title": identifier, "facts": (), "task": f"task of {identifier}", "timestamp": NOON} | fields
        return Observation(id=identifier, narrative=narrative, **fields)

    return make


@pytest.fixture
def open_words(tmp_path, words):
    """Open a memory on word vectors: `await open_words(…)`; keywords are those of ObservationsSettings."""

    async def opened(vectors=None, *, chat=None, **config):
        numbers = count()
        memory = ObservationsMemory(
            rows=observations_in_file(tmp_path / "observations.sqlite3", model=words.model),
            vectors=vectors or open_exact_file(tmp_path / "vectors.sqlite3", model="words"),
            embedder=words,
            chat=chat,
            clock=StandingClock(),
            new_id=lambda: f"id-{next(numbers)}",
            config=ObservationsSettings(**config),
        )
        await memory.open()
        return memory

    return opened


@pytest.fixture
async def on_words(open_words):
    """An open memory on word vectors."""
    memory = await open_words()
    yield memory
    await memory.close()
