"""What the tests of the manager system share: a memory on word vectors, in memory, with a clock that a test moves."""

import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest

from memstory.models.scripted_chat import ScriptedChat
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.ports import EmbedderUnavailableError
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings

DIMENSION = 64


class WordEmbedder:
    """A vector of the words of a text; it can be switched off, and counts its calls."""

    def __init__(self):
        self.model, self.dimension, self.calls, self.is_down = "words", DIMENSION, 0, False

    async def embed(self, texts, purpose):
        self.calls += 1
        if self.is_down:
            raise EmbedderUnavailableError("the embedder is down; start it")
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", " ").replace("?", " ").split():
                row[zlib.crc32(word.encode()) % DIMENSION] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)


class MovableClock:
    """Time that a test sets."""

    def __init__(self):
        self.moment = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def now(self):
        return self.moment

    async def sleep_until(self, moment):
        raise NotImplementedError


@dataclass
class World:
    """A manager and all that it needs."""

    manager: ManagerMemory
    store: ExactStore
    clock: MovableClock
    embedder: WordEmbedder

    async def index(self, owner="ann"):
        return await self.store.index("memories", owner)


@pytest.fixture
def make_world():
    """Make a manager; keywords are those of ManagerSettings."""

    def make(clock=None, store=None, **settings):
        embedder, clock, numbers = WordEmbedder(), clock or MovableClock(), count(1)
        store = store or ExactStore(model=embedder.model, dimension=DIMENSION)
        manager = ManagerMemory(
            settings=replace(ManagerSettings.default(), **{"min_score": 0.3, **settings}),
            vectors=store,
            embedder=embedder,
            chat=ScriptedChat([]),
            clock=clock,
            new_id=lambda: f"id-{next(numbers):04d}",
        )
        return World(manager=manager, store=store, clock=clock, embedder=embedder)

    return make


@pytest.fixture
def world(make_world):
    """A manager with the defaults."""
    return make_world()


@pytest.fixture
def manager(world):
    return world.manager


@pytest.fixture
def clock(world):
    return world.clock
