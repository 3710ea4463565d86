"""What is peculiar to each library, beside the contract that all targets keep."""

import subprocess
import sys

import pytest
from chromadb.errors import NotFoundError

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.frameworks.langgraph import LanggraphFactory
from memstory.targets.vector_stores.chroma import ChromaFactory
from memstory.targets.words.bm25 import Bm25Factory

ANN = Scope(user="ann.dot/slash", session="one")
EVERYWHERE = Scope(user=ANN.user)


def texts(hits):
    return [hit.text for hit in hits]


@pytest.mark.parametrize(
    ("module", "vendor"),
    [
        ("words.bm25", "bm25s"),
        ("vector_stores.chroma", "chromadb"),
        ("frameworks.langgraph", "langgraph"),
        ("frameworks.langgraph_postgres", "psycopg"),
        ("frameworks.langgraph_sqlite", "aiosqlite"),
        ("frameworks.llamaindex", "llama_index"),
        ("frameworks.mem0", "mem0"),
        ("vector_stores.sqlite_vec", "sqlite_vec"),
        ("vector_stores.txtai", "txtai"),
    ],
)
def test_loading_an_adapter_imports_no_vendor(module, vendor):
    code = f"import memstory.targets.{module}, sys; sys.exit(any(n.split('.')[0] == {vendor!r} for n in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603  (our own)


@pytest.mark.parametrize("factory_class", [ChromaFactory, LanggraphFactory])
async def test_a_story_may_bring_its_own_vectors(factory_class, opened, embedders):
    vectors = {"near": [0.6, 0.8], "far": [-1.0, 0.0], "asked": [1.0, 0.0]}
    async with opened(factory_class(embedders), vectors=vectors) as target:
        await target.add([Item(text="far"), Item(text="near")], ANN)
        hits = await target.search(Query(text="asked", top_k=2), EVERYWHERE)
        assert texts(hits) == ["near", "far"]
        assert [round(hit.score, 4) for hit in hits] == [0.6, -1.0]
        assert (await target.about())["embedder"] == "fixed-2"


@pytest.mark.parametrize("factory_class", [ChromaFactory, LanggraphFactory])
async def test_conditions_of_kind_session_and_metadata_hold_together(factory_class, opened, embedders, conditions_hold):
    async with opened(factory_class(embedders)) as target:
        await conditions_hold(target)


@pytest.mark.parametrize("factory_class", [ChromaFactory, LanggraphFactory])
async def test_an_update_without_metadata_keeps_the_old(factory_class, opened, embedders):
    async with opened(factory_class(embedders)) as target:
        receipt = await target.add([Item(text="old", metadata={"n": 1})], ANN)
        await target.update(Ref(id=receipt.items[0].id), Item(text="new"), ANN)
        hit = await target.get(Ref(id=receipt.items[0].id), ANN)
        assert (hit.text, dict(hit.metadata)) == ("new", {"n": 1})


async def test_chroma_takes_more_than_one_of_its_batches(opened, embedders, monkeypatch):
    async with opened(ChromaFactory(embedders)) as target:
        monkeypatch.setattr(type(target._client), "get_max_batch_size", lambda _: 3)
        receipt = await target.add([Item(text=f"text {number}") for number in range(8)], ANN)
        assert len({item.id for item in receipt.items}) == len(await target.list(EVERYWHERE)) == 8


async def test_chroma_gives_no_id_again_after_reopening(opened, embedders):
    given = []
    for _ in range(3):
        async with opened(ChromaFactory(embedders)) as target:
            receipt = await target.add([Item(text="one"), Item(text="two")], ANN)
            given += [item.id for item in receipt.items]
            await target.delete(Ref(), EVERYWHERE)
    assert len(set(given)) == 6


async def test_chroma_refuses_metadata_that_it_cannot_keep(opened, embedders):
    async with opened(ChromaFactory(embedders)) as target:
        nested = {"place": {"row": 3}}
        with pytest.raises(Refused, match="row"):
            await target.add([Item(text="crate", metadata=nested)], ANN)
        receipt = await target.add([Item(text="box")], ANN)
        with pytest.raises(Refused, match="row"):
            await target.update(Ref(id=receipt.items[0].id), Item(text="crate", metadata=nested), ANN)
        assert texts(await target.list(EVERYWHERE)) == ["box"]


async def test_langgraph_lists_more_than_one_page(opened, embedders):
    async with opened(LanggraphFactory(embedders)) as target:
        await target.add([Item(text=f"text {number}") for number in range(2_100)], ANN)
        assert len(await target.list(EVERYWHERE)) == 2_100


async def test_langgraph_says_that_it_takes_one_kind_at_a_time(opened, embedders):
    async with opened(LanggraphFactory(embedders)) as target:
        with pytest.raises(NotSupported, match="one kind at a time"):
            await target.search(Query(text="x", kinds=("a", "b")), ANN)


async def test_bm25_gives_no_hits_that_share_no_word(opened):
    async with opened(Bm25Factory()) as target:
        await target.add([Item(text="green tea leaves"), Item(text="black coffee beans"), Item(text="tea kettle")], ANN)
        hits = await target.search(Query(text="which tea leaves", top_k=3), EVERYWHERE)
        assert texts(hits) == ["green tea leaves", "tea kettle"]
        assert hits[0].score > hits[1].score > 0


async def test_bm25_refuses_what_it_cannot_hold_apart(opened):
    async with opened(Bm25Factory()) as target:
        await target.add([Item(text="green tea")], ANN)
        with pytest.raises(NotSupported):
            await target.search(Query(text="tea"), ANN)
        with pytest.raises(NotSupported):
            await target.search(Query(text="tea", where={"n": 1}), EVERYWHERE)


@pytest.mark.parametrize(
    "items",
    [
        [Item(text="one", key="k"), Item(text="two", key="k")],
        [Item(text="one", metadata={"": 1})],
        [Item(text="one", metadata={"$gt": 1})],
    ],
)
async def test_what_chroma_refuses_is_refused_and_no_failure_of_it(opened, embedders, items):
    async with opened(ChromaFactory(embedders)) as target:
        with pytest.raises(Refused):
            await target.add(items, ANN)
        assert await target.list(EVERYWHERE) == []


async def test_an_error_of_chroma_that_is_no_refusal_is_none(opened, embedders):
    async with opened(ChromaFactory(embedders)) as target:
        target.collection(ANN.user)._client.delete_collection(target.collection(ANN.user).name)
        with pytest.raises(NotFoundError):
            await target.add([Item(text="one")], ANN)
