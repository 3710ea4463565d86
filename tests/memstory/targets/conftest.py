"""An embedder that needs no model, and targets opened with it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from memstory.clock import StoryClock
from memstory.target import Environment
from memstory.targets.embedders import Embedders


class Letters:
    """A text's vector counts its letters."""

    model = "letters"

    async def embed(self, texts, purpose):
        return [self._vector(text.lower()) for text in texts]

    async def close(self):
        pass

    def _vector(self, text):
        counts = [text.count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]
        length = sum(count * count for count in counts) ** 0.5
        return [count / length for count in counts]


@pytest.fixture
def embedders():
    return Embedders({"minilm": Letters()})


@pytest.fixture
def opened(tmp_path):
    @asynccontextmanager
    async def open_target(factory, **fields):
        await factory.start(tmp_path)
        target = factory.target()
        await target.open(Environment(**{"workspace": str(tmp_path), "owner": "ann", **fields}), StoryClock())
        try:
            yield target
        finally:
            await target.close()
            await factory.stop()

    return open_target
