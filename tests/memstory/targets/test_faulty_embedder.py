"""An embedder that a story takes down, slows down or has answer alike, for every adapter that embeds."""

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Environment, Item, Query, Receipt, Request, Scope, Target
from memstory.models.word_vectors import WordVectors
from memstory.targets.embedders import Embedders, EmbeddingFactory, EmbeddingTarget

ANN = Scope(user="ann")


class Shelf(EmbeddingTarget):
    """Keeps texts with their vectors."""

    capabilities = frozenset({"add", "search"})

    async def open(self, env, clock):
        self.choose_embedder(env)
        self.rows = []

    async def close(self):
        pass

    def store_name(self):
        return "shelf"

    async def add(self, items, scope):
        vectors = await self.embedder.embed([item.text for item in items], "document")
        self.rows += zip([item.text for item in items], vectors, strict=True)
        return Receipt(items=())


class ShelfFactory(EmbeddingFactory):
    name = "shelf"
    adapter = Shelf


@pytest.fixture
async def shelf(tmp_path):
    target = ShelfFactory(Embedders({"words": WordVectors()})).target()
    await target.open(Environment(workspace=str(tmp_path), owner="ann", options={"embedder": "words"}), StoryClock())
    return target


async def add(shelf, *texts):
    await shelf.perform(Request.of(Target.add, [Item(text=text) for text in texts], ANN))


async def test_a_memory_whose_embedder_is_down_refuses_and_goes_on_when_it_is_back(shelf):
    await shelf.fault("embedder", "down")
    with pytest.raises(Refused, match="embedder down"):
        await add(shelf, "tea")
    assert await shelf.fault_counts() == {"embedder": 1}
    await shelf.fault("embedder", "ok")
    await add(shelf, "tea")
    assert [text for text, _ in shelf.rows] == ["tea"]


async def test_garbage_is_one_vector_for_every_text(shelf):
    await shelf.fault("embedder", "garbage")
    await add(shelf, "tea", "a ferry")
    assert shelf.rows[0][1] == shelf.rows[1][1]


async def test_an_error_of_the_memory_itself_is_no_refusal(shelf):
    with pytest.raises(NotSupported):
        await shelf.perform(Request.of(Target.search, Query(text="tea"), ANN))


async def test_another_part_cannot_be_made_to_fail(shelf):
    with pytest.raises(NotSupported, match="store"):
        await shelf.fault("store", "down")


def test_every_target_that_embeds_declares_it():
    assert "fault.embedder" in ShelfFactory().capabilities({})
