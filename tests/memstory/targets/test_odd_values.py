"""Values at the edge: a count of 0, a key without a character, whole numbers of more than 64 bits."""

from __future__ import annotations

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.controls.oracle import OracleFactory
from memstory.targets.vendors.bm25 import Bm25Factory
from memstory.targets.vendors.chroma import ChromaFactory
from memstory.targets.vendors.langgraph import LanggraphFactory
from memstory.targets.vendors.sqlite import Fts5Factory, SqliteVecFactory

ANN = Scope(user="ann")
FACTORIES = (Bm25Factory, ChromaFactory, Fts5Factory, LanggraphFactory, OracleFactory, SqliteVecFactory)
HUGE = 2**63


@pytest.fixture
async def target(factory_class, tmp_path, embedders):
    given = () if factory_class in (Bm25Factory, Fts5Factory, OracleFactory) else (embedders,)
    opened = factory_class(*given).target()
    await opened.open(Environment(workspace=str(tmp_path), owner="ann"), StoryClock())
    yield opened
    await opened.close()


@pytest.mark.parametrize("factory_class", FACTORIES)
async def test_none_is_found_where_none_is_asked_for(target):
    await target.add([Item(text="Green tea from Assam.")], ANN)
    try:
        found = await target.search(Query(text="green tea", top_k=0), ANN)
    except Refused as refused:
        assert "results 0" in str(refused)  # noqa: PT017  (one of two right answers)
    else:
        assert list(found) == []


@pytest.mark.parametrize("factory_class", FACTORIES)
async def test_a_key_without_a_character_is_a_key_or_not_supported(target):
    try:
        for text in ("The ferry leaves at nine.", "The ferry leaves at ten."):
            await target.add([Item(text=text, key="")], ANN)
    except NotSupported:
        assert isinstance(target, Bm25Factory().target().__class__)
        return
    assert [hit.text for hit in await target.list(ANN)] == ["The ferry leaves at ten."]
    assert (await target.get(Ref(key=""), ANN)).text == "The ferry leaves at ten."
    assert await target.delete(Ref(key=""), ANN)
    assert list(await target.list(ANN)) == []


@pytest.mark.parametrize("factory_class", [Fts5Factory, SqliteVecFactory])
@pytest.mark.parametrize("value", [HUGE, -HUGE - 1, 10**300, HUGE - 1])
async def test_a_whole_number_of_any_size_is_found_by_itself_alone(target, value):
    told = {"itself": value, "next": value + 1, "text": str(value), "list": [value], "name": 1}
    for text, number in told.items():
        await target.add([Item(text=f"tea {text}", metadata={"other" if text == "name" else "n": number})], ANN)
    found = await target.search(Query(text="tea", where={"n": value}), ANN)
    assert [hit.text for hit in found] == ["tea itself"]
    assert list(await target.search(Query(text="tea", where={"other": value}), ANN)) == []


@pytest.mark.parametrize("factory_class", [Fts5Factory, SqliteVecFactory])
async def test_a_float_beyond_64_bits_is_found_as_the_number_that_it_is(target):
    for text, number in {"float": 2.0**70, "whole": 2**70, "next": 2**70 + 1}.items():
        await target.add([Item(text=f"tea {text}", metadata={"n": number})], ANN)
    for value in (2.0**70, 2**70):
        found = await target.search(Query(text="tea", where={"n": value}), ANN)
        assert sorted(hit.text for hit in found) == ["tea float", "tea whole"]
