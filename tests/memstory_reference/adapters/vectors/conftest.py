import numpy as np
import pytest

from memstory_reference.adapters.vectors.exact_store import open_exact_folder
from memstory_reference.ports import Record


def drawn(count, dimension=8, seed=1):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def spread():
    """Return a source of unit vectors that point everywhere."""
    return drawn


@pytest.fixture
def rows_of():
    """Return what makes rows of vectors."""

    def rows(vectors, prefix="r", **metadata):
        return [
            Record(id=f"{prefix}{n:04}", text=f"text {n}", metadata=metadata, vector=vector)
            for n, vector in enumerate(vectors)
        ]

    return rows


@pytest.fixture
def filled(rows_of):
    """Return what opens a store in a folder and writes rows of one owner."""

    async def fill(folder, count=30, *, owner="ana"):
        store = open_exact_folder(folder, model="fixed")
        index = await store.index("memory", owner)
        await index.upsert(rows_of(drawn(count)))
        return store, index

    return fill
