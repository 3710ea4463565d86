"""What is peculiar to each library, beside the contract that all targets keep."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from chromadb.errors import NotFoundError

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.discovery import GROUP
from memstory.targets.vendors.bm25 import Bm25Factory
from memstory.targets.vendors.chroma import ChromaFactory
from memstory.targets.vendors.langgraph import LanggraphFactory

ANN = Scope(user="ann.dot/slash", session="one")
EVERYWHERE = Scope(user=ANN.user)


def texts(hits):
    return [hit.text for hit in hits]


def test_loading_the_adapters_imports_nothing_but_what_memstory_itself_needs():
    names = sorted(entry.value for entry in entry_points(group=GROUP) if entry.value.startswith("memstory."))
    code = f"""
import sys
from importlib import import_module
import memstory.cli
before = set(sys.modules)
for name in {names!r}:
    import_module(name.partition(":")[0])
packages = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(packages - {{"memstory"}} - sys.stdlib_module_names))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603  (ours)
    assert (len(names) > 15, run.stdout.split()) == (True, [])


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
