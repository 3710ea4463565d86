import pytest

from memstory.contract.errors import Refused
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.vector_stores.sqlite_vec import SqliteVecFactory
from memstory.targets.words.fts5 import Fts5Factory

ANN, BOB = Scope(user="ann"), Scope(user="bob")
MORNING = Scope(user="ann", session="morning")


@pytest.fixture(params=[Fts5Factory, SqliteVecFactory])
async def target(request, opened, embedders):
    factory = Fts5Factory() if request.param is Fts5Factory else SqliteVecFactory(embedders)
    async with opened(factory) as target:
        yield target


def texts(hits):
    return [hit.text for hit in hits]


async def test_a_key_used_again_is_told_as_updated(target):
    first = await target.add([Item(text="June", key="deadline"), Item(text="tea")], ANN)
    again = await target.add([Item(text="July", key="deadline")], ANN)
    assert [(item.text, item.outcome) for item in first.items] == [("June", "stored"), ("tea", "stored")]
    assert [(item.id, item.text, item.outcome) for item in again.items] == [(first.items[0].id, "July", "updated")]


async def test_an_updated_memory_is_found_by_its_new_words_under_its_old_id(target):
    receipt = await target.add([Item(text="zebra", key="animal", kind="fact"), Item(text="quux")], ANN)
    (done,) = (await target.update(Ref(key="animal"), Item(text="lynx"), ANN)).items
    assert (done.id, done.text, done.outcome) == (receipt.items[0].id, "lynx", "updated")
    assert texts(await target.search(Query(text="lynx", top_k=1), ANN)) == ["lynx"]
    assert "zebra" not in texts(await target.list(ANN))


async def test_only_what_its_user_has_is_updated(target):
    await target.add([Item(text="tea", key="drink")], BOB)
    with pytest.raises(Refused, match="nothing is remembered under 'drink'"):
        await target.update(Ref(key="drink"), Item(text="milk"), ANN)
    assert texts(await target.list(BOB)) == ["tea"]


async def test_a_deletion_that_names_nothing_keeps_to_its_session_and_kind(target):
    await target.add([Item(text="tea", kind="fact"), Item(text="milk", kind="note")], MORNING)
    await target.add([Item(text="bread", kind="fact")], ANN)
    assert await target.delete(Ref(kind="fact"), MORNING)
    assert texts(await target.list(ANN)) == ["milk", "bread"]
    assert await target.delete(Ref(), MORNING)
    assert not await target.delete(Ref(), MORNING)
    assert texts(await target.list(ANN)) == ["bread"]
