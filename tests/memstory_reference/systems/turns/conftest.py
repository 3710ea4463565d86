"""What the tests of the turns system share: a memory on word vectors, whose embedder a test can break."""

import zlib
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from memstory_reference.composition.turns import turns_in_folder
from memstory_reference.storage.tombstones import Tombstones
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.stores.index import Columns, Index, Postings, pool_of, stem_codes
from memstory_reference.systems.turns.stores.tables_store import features_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class WordEmbedder:
    """A vector of the words of a text; `broken` is answered instead."""

    model, dimension, broken = "words", 64, None

    async def embed(self, texts, purpose):
        if self.broken is not None:
            return np.array([self.broken] * len(texts), np.float32)
        rows = np.full((len(texts), 64), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", " ").replace("?", " ").split():
                row[zlib.crc32(word.encode()) % 64] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Noon:
    def now(self):
        return NOON


@pytest.fixture
def embedder():
    return WordEmbedder()


@pytest.fixture
def config():
    return TurnsSettings()


@pytest.fixture
async def memory(tmp_path, embedder, config):
    numbers = count()
    store = turns_in_folder(tmp_path / "turns", embedder.model)
    opened = TurnsService(
        store=store,
        embedder=embedder,
        clock=Noon(),
        new_id=lambda: f"id{next(numbers)}",
        tombstones=Tombstones(),
        config=config,
    )
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def pool_for():
    """Returns the pool of a question among turns, by number, whose unit vectors are given."""

    def make(turns, question, vectors, vector, size=50):
        columns, postings = Columns(), Postings()
        matrix = np.zeros((max(turns, default=0) + 1, len(vector)), np.float32)
        for number, turn in sorted(turns.items()):
            words = turn.stems
            columns.put([features_of(turn, number, len(words))])
            postings.add(np.full(len(words), number), stem_codes(words))
            matrix[number] = vectors[number]
        index = Index(columns=columns, postings=postings, matrix=SimpleNamespace(rows=matrix))
        return pool_of(index, np.asarray(vector, np.float32), question.stems, size, None)

    return make
