import sqlite3

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.vendors import sqlite
from memstory.targets.vendors.langgraph import LanggraphSqliteFactory
from memstory.targets.vendors.sqlite import Fts5Factory, SqliteVecFactory

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


async def test_an_id_is_never_given_again(target):
    (first,) = (await target.add([Item(text="one")], ANN)).items
    assert await target.delete(Ref(id=first.id), ANN)
    (second,) = (await target.add([Item(text="two")], ANN)).items
    assert second.id != first.id


class WithoutExtensions:
    pass


@pytest.fixture
def _no_driver(monkeypatch):
    monkeypatch.setattr(sqlite3, "Connection", WithoutExtensions)
    monkeypatch.setattr(sqlite, "find_spec", lambda _: None)


def test_the_driver_really_loads_extensions():
    connection = sqlite.loading_driver().connect(":memory:")
    connection.enable_load_extension(True)  # noqa: FBT003  (the driver's way)
    connection.close()


def test_pythons_own_driver_is_taken_where_it_can(monkeypatch):
    monkeypatch.setattr(sqlite3, "Connection", type("Can", (), {"enable_load_extension": None}))
    assert sqlite.loading_driver() is sqlite3


@pytest.mark.usefixtures("_no_driver")
@pytest.mark.parametrize("factory_class", [SqliteVecFactory, LanggraphSqliteFactory])
async def test_without_any_driver_a_backend_is_unsupported_and_says_why(factory_class, tmp_path, embedders):
    target = factory_class(embedders).target()
    with pytest.raises(NotSupported, match=r"cannot load extensions.*pip install pysqlite3"):
        await target.open(Environment(workspace=str(tmp_path), owner="ann"), StoryClock())
