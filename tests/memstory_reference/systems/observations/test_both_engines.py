"""What a store of observations gives is the same on SQLite and on Postgres."""

import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import open_postgres_database
from memstory_reference.systems.observations import observations_store
from memstory_reference.text.words import extract_keywords

WORDS = ["bees", "Café", "e\u0301tude", "我用", "glm4", "v2", "a_b", "x" * 3_000, "9", "Đặng", "orchid", "price"]
ASKED = [
    *WORDS,
    "cafe",
    "glm4-v2",
    "v2:glm4",
    "a.b",
    "bees-orchid-price",
    "etude/9",
    "用",
    "gone",
    "cafe orchid v2-glm4",
]
OWNERS = ("ann", "bob", "ann\u0301")


@pytest.fixture
async def stores(tmp_path, postgres_database):
    """The store on each engine."""
    sqlite = observations_store.observations_in_file(tmp_path / "observations.sqlite3", model="fixed")
    place = PostgresPlace(url=postgres_database)
    database = await open_postgres_database(place, observations_store.MIGRATIONS, memory="it", model="fixed")
    stores = [sqlite, observations_store.ObservationsStore(database, observations_store.PostgresWords)]
    yield stores
    for store in stores:
        await store.aclose()


def ask_all(store, owner, ids):
    named = [store.ids_by_words(owner, extract_keywords(asked), tasks) for asked in ASKED for tasks in (1, 3, 100)]
    vectors = {one: vector.tolist() for one, vector in store.vectors(owner, ids).items()}
    rows = (store.get(owner, ids), store.recent(owner, 7), store.recent(owner, None), store.ids(owner))
    return named, vectors, rows, store.count(owner), store.tasks(owner, ids), store.owners(), store.dimension()


@pytest.mark.parametrize("score", [5, -0.0], ids=["whole", "below nothing"])
async def test_a_score_that_an_engine_gives_back_in_another_form_is_no_damage(stores, run_of, score):
    observation = replace(run_of("r1", "Bees."), final_score=score)
    for store in stores:
        assert store.insert("ann", [(observation, np.ones(4, np.float32))]) == ["r1"]
        assert store.get("ann", ["r1"]) == [observation]


def entries(store):
    return [(one.owner, one.id) for one in store.pending()]


async def test_words_rows_and_the_outbox_are_the_same(stores, run_of, seed):
    chance = random.Random(seed)  # noqa: S311  (a test's choice, no secret)

    def text():
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))

    def run(number):
        one = run_of(f"r{number}", text(), title=text(), facts=tuple(text() for _ in range(chance.randint(0, 3))))
        some = {"task": text(), "final_score": chance.choice([None, 3, 7.25]), "sources": (text(),)}
        return replace(one, timestamp=one.timestamp + timedelta(seconds=chance.randint(0, 9)), **some)

    ids = [f"r{number}" for number in range(40)]
    for owner in OWNERS:
        rows = [(run(chance.randint(0, 39)), np.array([number, 1], np.float32)) for number in range(60)]
        gone, rated = chance.sample(ids, 12), chance.sample(ids, 12)
        given = [
            (store.insert(owner, rows), [store.rate(owner, one, 1.5) for one in rated], store.delete(owner, gone))
            for store in stores
        ]
        assert given[0] == given[1]
    assert entries(stores[0]) == entries(stores[1])
    for owner in (*OWNERS, "nobody"):
        sqlite, postgres = (ask_all(store, owner, ids) for store in stores)
        assert sqlite == postgres
    assert any(ask_all(stores[0], "ann", ids)[0])
    for store in stores:
        store.strike_off(store.pending()[:-1])
        assert len(store.pending()) == 1


async def test_what_a_failure_cut_off_leaves_neither_row_nor_words_nor_work(stores, run_of):
    for store in stores:
        with pytest.raises(ValueError, match="no vector"):
            store.insert("ann", [(run_of("a", "Bees hum."), np.zeros(2)), (run_of("b", "Bees."), "no vector")])
        assert (store.ids("ann"), store.pending()) == ([], [])
        assert store.ids_by_words("ann", extract_keywords("bees"), 5) == []
