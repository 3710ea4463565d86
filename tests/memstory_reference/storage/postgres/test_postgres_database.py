"""A schema is brought up to date however long that takes; only waiting for it has a limit."""

import pytest

from memstory_reference import open_memory
from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import MEMORY, open_schema


@pytest.mark.slow
async def test_a_migration_may_take_longer_than_an_opening_waits(postgres_database, monkeypatch):
    monkeypatch.setattr(postgres_database, "OPENING_SECONDS", 5.0)
    place = PostgresPlace(url=postgres_database)
    about = await open_schema(place, ["SELECT pg_sleep(5.5)"], {"model": "fixed"})
    again = await open_schema(place, ["SELECT pg_sleep(5.5)"])
    assert about["model"] == again["model"] == "fixed"
    assert (about["schema"], again["schema"]) == ("0", "1")


async def test_a_schema_of_another_memory_is_refused_by_name_and_left_as_it_is(postgres_database):
    place = PostgresPlace(url=postgres_database)
    await open_schema(place, ["CREATE TABLE one ()"], {MEMORY: "turns"})
    for of_another in ({MEMORY: "topics"}, {}):
        with pytest.raises(StoreConflictError, match=r"a memory of turns, not of (topics|layers): .*schema=NAME"):
            await open_schema(place, ["CREATE TABLE one ()", "CREATE TABLE two ()"], of_another)
    again = await open_schema(place, ["CREATE TABLE one ()"], {MEMORY: "turns"})
    assert (again["schema"], again[MEMORY]) == ("1", "turns")


@pytest.mark.parametrize(("first", "second"), [("turns", "layers"), ("layers", "turns")])
def test_a_schema_that_holds_another_memory_is_refused_and_left_as_it_is(postgres_database, first, second):
    with open_memory(first, postgres_database, owner="ann", embedding_model="words") as memory:
        memory.add("My boat is in Bergen.")
    with pytest.raises(StoreConflictError, match=rf"holds a memory of {first}, not of {second}: .*schema=NAME"):
        open_memory(second, postgres_database, owner="ann", embedding_model="words")
    with open_memory(second, f"{postgres_database}&schema=other", owner="ann", embedding_model="words") as memory:
        memory.add("My cart is in Graz.")
    with open_memory(first, postgres_database, owner="ann", embedding_model="words") as memory:
        assert ["Bergen" in one.text for one in memory.list()] == [True]
