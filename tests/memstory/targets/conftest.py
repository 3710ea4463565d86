"""An embedder that needs no model, and targets opened with it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.target import Environment, Item, Query, Scope
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


@pytest.fixture
def conditions_hold():
    async def check(target):
        """Add three memories, and look for them by kind, session and metadata together."""
        here, anywhere, elsewhere = (Scope(user="ann.dot/slash", session=session) for session in ("one", None, "two"))
        rows = [("a b", "fact", 1), ("a b c", "fact", 2), ("a b d", "note", 1)]
        await target.add([Item(text=text, kind=kind, metadata={"n": number}) for text, kind, number in rows], here)
        asked = Query(text="a b", kinds=("fact",), where={"n": 1})
        assert [hit.text for hit in await target.search(asked, here)] == ["a b"]
        assert await target.search(asked, elsewhere) == []
        assert [hit.text for hit in await target.list(anywhere, kinds=("note",))] == ["a b d"]

    return check
