from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count

import numpy as np
import pytest

from memstory.contract.models import ChatModelUnavailableError, Reply
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.storage.sql_database import Database
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.parts import PipelineParts
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.systems.pipeline.tables import EMBEDDED_FILE, SCHEMA, SCHEMA_VERSION
from memstory_reference.targets.environment_ports import WatchedEmbedder


@dataclass
class StoppedClock:
    moment: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def now(self):
        return self.moment

    def move(self, **span):
        self.moment += timedelta(**span)

    async def sleep_until(self, moment):
        raise AssertionError(moment)


class HashedVectors:
    """A vector for any text; texts named in `vectors` have theirs, others point somewhere at random."""

    profile = NO_PREFIXES

    def __init__(self, vectors=None, dimension=16, model=None):
        self.model = model or f"hashed-{dimension}"
        self.dimension = dimension
        self.vectors = vectors or {}

    async def embed(self, texts, purpose):
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.dimension)

    def _vector(self, text):
        if text in self.vectors:
            vector = np.zeros(self.dimension)
            vector[: len(self.vectors[text])] = self.vectors[text]
        else:
            seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
            vector = np.random.default_rng(seed).standard_normal(self.dimension)
        return vector / np.linalg.norm(vector)


@dataclass
class Summariser:
    """A chat model that repeats what it was asked, or fails, or says nothing."""

    name = "summariser"
    fails: bool = False
    says: str | None = None
    prompts: list = field(default_factory=list)

    async def chat(self, request):
        self.prompts.append(request.messages[0].content)
        if self.fails:
            raise ChatModelUnavailableError("down")
        first = self.prompts[-1].partition("Conversation:")[2].split()[0]
        return Reply(content=f"Summary {len(self.prompts)} of {first}." if self.says is None else self.says)


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def summariser():
    return Summariser()


@pytest.fixture
def hashed_vectors():
    return HashedVectors


@pytest.fixture
def embedder():
    return WatchedEmbedder(HashedVectors())


@pytest.fixture
async def make_pipeline(tmp_path, clock):
    """A pipeline over one file; `vectors` names the vectors of texts, other keywords are parts or configuration."""
    numbers = count()
    made = []

    def make(vectors=None, *, embedder=None, talker=None, chat=None, **given):
        names = {"reranker", "detectors", "counter", "around_searches"}
        parts = {name: given.pop(name) for name in names & given.keys()}
        used = embedder or WatchedEmbedder(HashedVectors(vectors))
        about = {"schema": SCHEMA_VERSION, "model": used.model}
        pipeline = PipelineMemory(
            Database(tmp_path / EMBEDDED_FILE.name, schema=SCHEMA, about=about),
            PipelineParts(
                embedder=used,
                clock=clock,
                new_id=lambda: f"id-{next(numbers):04}",
                talker=talker,
                chat=chat,
                **parts,
            ),
            PipelineSettings().merge(given, "test"),
        )
        made.append(pipeline)
        return pipeline

    yield make
    for pipeline in made:
        await pipeline.close()
