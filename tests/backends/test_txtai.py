"""What is peculiar to txtai."""

import pytest

from memstory.contract.errors import Refused
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.embedders import Embedders
from memstory.targets.vendors.txtai import TxtaiFactory

vendor = "txtai"
ANN, BOB = Scope(user="ann", session="one"), Scope(user="bob", session="one")
EVERYWHERE = Scope(user="ann")


@pytest.fixture
def factory(letters):
    return TxtaiFactory(Embedders({"minilm": letters}))


def texts(hits):
    return [hit.text for hit in hits]


async def test_a_list_of_items_is_embedded_at_once(factory, opened, letters):
    async with opened(factory) as target:
        await target.add([Item(text="one"), Item(text="two")], ANN)
        assert (["one", "two"], "document") in letters.calls


async def test_conditions_of_kind_session_and_metadata_hold_together(factory, opened):
    async with opened(factory) as target:
        await target.add(
            [
                Item(text="a b", kind="fact", metadata={"n": 1}),
                Item(text="a b c", kind="fact", metadata={"n": 2}),
                Item(text="a b d", kind="note", metadata={"n": 1}),
            ],
            ANN,
        )
        asked = Query(text="a b", kinds=("fact", "other"), where={"n": 1})
        assert texts(await target.search(asked, ANN)) == ["a b"]
        assert await target.search(asked, Scope(user="ann", session="two")) == []
        assert texts(await target.list(EVERYWHERE, kinds=("note",))) == ["a b d"]


async def test_a_mapping_as_the_value_of_a_condition_is_refused(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text="a b", metadata={"project": "garden"})], ANN)
        for value in ({"$ne": ""}, ["garden", {"$ne": ""}]):
            with pytest.raises(Refused, match="is compared with values, not with a mapping"):
                await target.search(Query(text="a b", where={"project": value}), EVERYWHERE)
        assert texts(await target.search(Query(text="a b", where={"project": "garden"}), EVERYWHERE)) == ["a b"]


async def test_a_key_is_its_users_own_and_replaces(factory, opened):
    async with opened(factory) as target:
        for scope, text in ((ANN, "June"), (BOB, "May"), (ANN, "July")):
            await target.add([Item(text=text, key="deadline")], scope)
        assert (await target.get(Ref(key="deadline"), EVERYWHERE)).text == "July"
        assert texts(await target.list(Scope(user="bob"))) == ["May"]
        assert texts(await target.list(EVERYWHERE)) == ["July"]


async def test_an_update_without_metadata_keeps_the_old(factory, opened):
    async with opened(factory) as target:
        receipt = await target.add([Item(text="old", metadata={"n": 1})], ANN)
        await target.update(Ref(id=receipt.items[0].id), Item(text="new"), ANN)
        hit = await target.get(Ref(id=receipt.items[0].id), ANN)
        assert (hit.text, dict(hit.metadata)) == ("new", {"n": 1})


async def test_what_users_type_is_no_sql(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text="it's 'quoted' : x", metadata={"n": "o'clock"})], ANN)
        await target.add([Item(text="of bob")], BOB)
        for text in ("it's", "x') or owner = 'bob", ":v0", "similar(x)", "%"):
            assert texts(await target.search(Query(text=text, top_k=9), EVERYWHERE)) == ["it's 'quoted' : x"]
        assert texts(await target.search(Query(text="it", where={"n": "o'clock"}), EVERYWHERE))
        with pytest.raises(Refused, match="txtai has no column"):
            await target.search(Query(text="it", where={"n] = 1 or [owner": "bob"}), EVERYWHERE)


async def test_what_was_deleted_stays_so_after_reopening(factory, opened):
    async with opened(factory) as target:
        receipt = await target.add([Item(text="gone"), Item(text="kept")], ANN)
        assert await target.delete(Ref(id=receipt.items[0].id), EVERYWHERE)
    async with opened(factory) as target:
        assert texts(await target.list(EVERYWHERE)) == ["kept"]
        assert await target.delete(Ref(), EVERYWHERE)
    async with opened(factory) as target:
        assert await target.list(EVERYWHERE) == []
