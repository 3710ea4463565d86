"""What is peculiar to LlamaIndex's memory block."""

import pytest

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Item, Query, Scope
from memstory.targets.embedders import Embedders
from memstory.targets.vendors.llamaindex import LlamaindexFactory

vendor = "llama_index"
ANN = Scope(user="ann", session="one")
EVERYWHERE = Scope(user="ann")


@pytest.fixture
def factory(letters):
    return LlamaindexFactory(Embedders({"minilm": letters}))


def texts(hits):
    return [hit.text for hit in hits]


async def test_hits_are_the_messages_in_its_text(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text="tea\n\nand more tea"), Item(text="<b>zebra</b>")], ANN)
        hits = await target.search(Query(text="tea", top_k=2), EVERYWHERE)
        assert texts(hits) == ["tea\n\nand more tea", "<b>zebra</b>"]
        assert {(hit.id, hit.score) for hit in hits} == {(None, None)}
        text = await target.context(Query(text="tea", top_k=1), EVERYWHERE)
        assert text == "<message role='user'>tea\n\nand more tea</message>"


@pytest.mark.parametrize(
    "text", ["  - a line\n", "flour\n\n\t500 g  salt\r\n", "zero\u200bwidth soft\u00adhyphen", "one\0two", "e\u0301"]
)
async def test_a_text_comes_back_letter_for_letter(factory, opened, text):
    async with opened(factory) as target:
        await target.add([Item(text=text)], ANN)
        assert texts(await target.search(Query(text="tea"), EVERYWHERE)) == [text]


async def test_how_many_are_wanted_is_forgotten_after_each_search(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text=f"tea {word}") for word in ("one", "two", "three", "four")], ANN)
        assert len(await target.search(Query(text="tea", top_k=4), EVERYWHERE)) == 4
        assert len(await target.search(Query(text="tea"), EVERYWHERE)) == 2


async def test_it_says_what_it_cannot_do(factory, opened):
    async with opened(factory) as target:
        for query, scope in (
            (Query(text="tea"), ANN),
            (Query(text="tea", kinds=("fact",)), EVERYWHERE),
            (Query(text="tea", where={"n": 1}), EVERYWHERE),
        ):
            with pytest.raises(NotSupported):
                await target.search(query, scope)
        with pytest.raises(NotSupported):
            await target.add([Item(text="x", key="k")], ANN)


async def test_none_at_all_is_what_chroma_inside_it_refuses(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text="tea")], ANN)
        for ask in (target.search, target.context):
            with pytest.raises(Refused, match="requested results"):
                await ask(Query(text="tea", top_k=0), EVERYWHERE)
        assert texts(await target.search(Query(text="tea"), EVERYWHERE)) == ["tea"]
