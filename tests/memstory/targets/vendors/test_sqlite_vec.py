import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstory.contract.target import Environment
from memstory.targets.embedders import Embedders
from memstory.targets.rows import Row, RowQuery
from memstory.targets.vendors.sqlite import SqliteVecFactory, SqliteVecTarget, loading_driver

NOW = "2026-01-01T12:00:00+00:00"


class InMemory(SqliteVecTarget):
    length = 2

    def open_file(self, path):
        return super().open_file(":memory:")


def opened_store():
    store = InMemory(Embedders())
    store.connect(Environment(workspace="unused", owner="ann"))
    return store


@pytest.fixture
def store():
    opened = opened_store()
    yield opened
    opened.disconnect()


def at(degrees):
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def row(angle, user="ann", **fields):
    id_ = f"{user}:{fields.get('key', angle)}"
    return Row(**{"id": id_, "user": user, "text": f"at {angle}", "created_at": NOW, "vector": at(angle), **fields})


def add(store, *angles, **fields):
    return store.write([row(angle, **fields) for angle in angles])


def near(store, angle, count=10, user="ann", **wanted):
    return store.rank(RowQuery(user=user, vector=at(angle), **wanted), count)


def found(store, angle, count=10, **wanted):
    return [row.text for row, _ in near(store, angle, count, **wanted)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 180), min_size=1, max_size=30, unique=True), st.integers(1, 30))
def test_the_nearest_are_found_and_the_best_is_first(angles, count):
    store = opened_store()
    add(store, *angles)
    assert found(store, 0, count) == [f"at {angle}" for angle in sorted(angles)[:count]]
    store.disconnect()


def test_a_score_is_the_cosine(store):
    add(store, 0, 60, 180)
    scores = [score for _, score in near(store, 0)]
    assert scores == [pytest.approx(1), pytest.approx(0.5), pytest.approx(-1)]


def test_a_user_is_not_crowded_out_by_others(store):
    add(store, *range(90), user="bob")
    add(store, 170)
    assert found(store, 0, 3) == ["at 170"]


def test_what_a_condition_leaves_out_takes_no_place(store):
    add(store, *range(90), kind="note", session="one")
    add(store, 170, kind="fact", metadata={"n": 1}, session="one")
    assert found(store, 0, 3, kinds=["fact"], where={"n": 1}, session="one") == ["at 170"]
    assert found(store, 0, 3, session="two") == []


def test_a_row_of_a_known_id_is_replaced_with_its_vector(store):
    assert add(store, 10, key="angle", metadata={"draft": True}) == set()
    assert add(store, 170, key="angle") == {"ann:angle"}
    assert [(row.text, row.metadata) for row in store.find(RowQuery(user="ann"))] == [("at 170", {})]
    assert found(store, 0) == ["at 170"]


def test_a_rewritten_memory_is_found_by_its_new_vector(store):
    add(store, 0, 90, metadata={"n": 1})
    store.rewrite(row(180, id="ann:0", text="moved", metadata={"n": 1}))
    assert found(store, 180, 1) == ["moved"]
    assert found(store, 0, 1) == ["at 90"]
    assert store.find(RowQuery(user="ann", id="ann:0"))[0].metadata == {"n": 1}


def test_a_batch_is_stored_whole_or_not_at_all(store):
    with pytest.raises(TypeError):
        store.write([row(0), row(1, metadata={"x": object()})])
    with pytest.raises(store.connection.OperationalError):
        store.write([row(0), row(1, vector=[1.0])])
    assert store.find(RowQuery(user="ann")) == []
    assert found(store, 0) == []


def test_deleting_all_of_a_user_leaves_the_others(store):
    add(store, 0, 1)
    add(store, 2, user="bob")
    store.remove(store.find(RowQuery(user="ann")))
    assert store.find(RowQuery(user="ann")) == []
    assert found(store, 0) == []
    assert found(store, 0, user="bob") == ["at 2"]


async def test_it_says_by_which_driver_it_loads_the_extension(opened, embedders):
    async with opened(SqliteVecFactory(embedders)) as target:
        about = await target.about()
    assert about["driver"] == f"SQLite {loading_driver().sqlite_version} by {loading_driver().__name__}"
    assert about["embedder"] == "letters"
