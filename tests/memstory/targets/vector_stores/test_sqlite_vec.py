import math

import pytest
import sqlite_vec
from hypothesis import given, settings
from hypothesis import strategies as st

from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.sqlite_store import having, loading_driver, named, of_kinds, within
from memstory.targets.vector_stores.sqlite_vec import SqliteVecFactory
from memstory.targets.vector_stores.sqlite_vec_store import SqliteVecStore

ANN, BOB = Scope(user="ann", session="one"), Scope(user="bob", session="one")
NOW = "2026-01-01T12:00:00+00:00"


def opened_store(path):
    return SqliteVecStore(path, loading_driver(), sqlite_vec, 2)


@pytest.fixture
def store(tmp_path):
    opened = opened_store(tmp_path / "m.sqlite3")
    yield opened
    opened.close()


def at(degrees):
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def add(store, *angles, scope=ANN, **fields):
    items = [Item(text=f"at {angle}", **fields) for angle in angles]
    return [id_ for id_, _ in store.add(items, [at(angle) for angle in angles], scope, NOW)]


def found(store, angle, scope=ANN, conditions=(), **asked):
    return [hit.text for hit in store.search(at(angle), Query(text="?", **asked), scope, conditions)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 180), min_size=1, max_size=30, unique=True), st.integers(1, 30))
def test_the_nearest_are_found_and_the_best_is_first(angles, count):
    store = opened_store(":memory:")
    add(store, *angles)
    assert found(store, 0, top_k=count) == [f"at {angle}" for angle in sorted(angles)[:count]]
    store.close()


def test_a_score_is_the_cosine(store):
    add(store, 0, 60, 180)
    hits = store.search(at(0), Query(text="?"), ANN, [])
    assert [hit.score for hit in hits] == [pytest.approx(1), pytest.approx(0.5), pytest.approx(-1)]


def test_a_user_is_not_crowded_out_by_others(store):
    add(store, *range(90), scope=BOB)
    add(store, 170)
    assert found(store, 0, top_k=3) == ["at 170"]


def test_what_a_condition_leaves_out_takes_no_place(store):
    add(store, *range(90), kind="note")
    add(store, 170, kind="fact", metadata={"n": 1})
    conditions = [*within(ANN), *of_kinds(["fact"]), *having({"n": 1})]
    assert found(store, 0, conditions=conditions, top_k=3) == ["at 170"]
    assert found(store, 0, conditions=within(Scope(user="ann", session="two")), top_k=3) == []


def test_a_key_used_again_replaces_text_vector_and_metadata_and_keeps_its_id(store):
    (first,) = add(store, 10, key="angle", metadata={"draft": True})
    (second,) = add(store, 170, key="angle")
    assert first == second
    assert [(hit.text, hit.metadata) for hit in store.find(within(ANN))] == [("at 170", {})]
    assert found(store, 0) == ["at 170"]


def test_a_rewritten_memory_is_found_by_its_new_vector(store):
    first, _ = add(store, 0, 90, metadata={"n": 1})
    store.rewrite(first, Item(text="moved"), at(180))
    assert found(store, 180, top_k=1) == ["moved"]
    assert found(store, 0, top_k=1) == ["at 90"]
    assert store.find(named(Ref(id=first), "ann"))[0].metadata == {"n": 1}


def test_a_batch_is_stored_whole_or_not_at_all(store):
    items = [Item(text="good"), Item(text="bad", metadata={"x": object()})]
    with pytest.raises(TypeError):
        store.add(items, [at(0), at(1)], ANN, NOW)
    with pytest.raises(store._connection.OperationalError):
        store.add([Item(text="good"), Item(text="of another length")], [at(0), [1.0]], ANN, NOW)
    assert store.find(within(ANN)) == []
    assert found(store, 0) == []


def test_deleting_all_of_a_user_leaves_the_others(store):
    add(store, 0, 1)
    add(store, 2, scope=BOB)
    assert store.delete(within(ANN))
    assert not store.delete(within(ANN))
    assert found(store, 0) == []
    assert found(store, 0, scope=BOB) == ["at 2"]


def test_an_id_is_never_given_again(store):
    (first,) = add(store, 0)
    store.delete(named(Ref(id=first), "ann"))
    assert add(store, 1) != [first]


async def test_it_says_by_which_driver_it_loads_the_extension(opened, embedders):
    async with opened(SqliteVecFactory(embedders)) as target:
        about = await target.about()
    assert about["driver"] == f"SQLite {loading_driver().sqlite_version} by {loading_driver().__name__}"
    assert about["embedder"] == "letters"
