"""What the tests of the topics system share: a memory on exact vectors, in memory, with a clock that a test moves."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.embedding.prefixes import profile_of
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.ports import EmbedderUnavailableError
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.targets.environment_ports import WatchedEmbedder

VECTORS = {
    "query": [1, 0],
    "near": [0.9, 0.43588989],
    "middle": [0.6, 0.8],
    "threshold": [0.3, 0.95393920],
    "below": [0.29, 0.95702665],
    "opposite": [-1, 0],
    "Elixir": [0.8, 0.6],
    "Rust": [0.7, 0.71414284],
    "Eve": [0, 1],
    "Q: What is the capital of France?\nA: Paris.": [0.91, 0.41460825],
}


class MovableClock:
    """Time that a test sets."""

    def __init__(self):
        self.moment = datetime(2026, 5, 30, 9, 0, tzinfo=UTC)

    def now(self):
        return self.moment

    def advance(self, **by):
        self.moment += timedelta(**by)

    async def sleep_until(self, moment):
        raise NotImplementedError


class SwitchedEmbedder:
    """An embedder that can be switched off, or made to return garbage."""

    def __init__(self, inner):
        self.inner, self.model, self.profile, self.mode = inner, inner.model, inner.profile, "ok"

    @property
    def dimension(self):
        return self.inner.dimension

    async def embed(self, texts, purpose):
        if self.mode == "down":
            raise EmbedderUnavailableError("the embedder is down; start it")
        vectors = await self.inner.embed(texts, purpose)
        return vectors * float("nan") if self.mode == "garbage" else vectors


@dataclass
class Memory:
    """A service and all that it needs."""

    service: MemoryService
    store: ExactStore
    clock: MovableClock
    embedder: WatchedEmbedder
    switch: SwitchedEmbedder
    new_id: object = field(default=None)


@pytest.fixture
def vectors():
    """The texts that have a vector; a test may add to them before it makes a memory."""
    return dict(VECTORS)


@pytest.fixture
def make_memory(vectors):
    """Make a memory; keywords are settings."""

    def make(**config):
        switch = SwitchedEmbedder(FixedVectors(vectors, profile=profile_of("nomic-embed-text")))
        embedder, clock, numbers = WatchedEmbedder(switch), MovableClock(), count(1)
        store = ExactStore(model=embedder.model, dimension=2)

        def new_id():
            return f"id-{next(numbers):04d}"

        service = MemoryService(
            settings=TopicsSettings.default().merge({"min_score": 0.3, **config}, "test"),
            vectors=store,
            embedder=embedder,
            clock=clock,
            new_id=new_id,
        )
        return Memory(service=service, store=store, clock=clock, embedder=embedder, switch=switch, new_id=new_id)

    return make


@pytest.fixture
def memory(make_memory):
    """A memory with the shipped defaults."""
    return make_memory()
