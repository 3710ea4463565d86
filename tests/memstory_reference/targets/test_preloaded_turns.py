"""The turns target asks a memory that somebody else has filled, and leaves it as it was."""

from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import Refused, StoryError
from memstory.contract.target import Environment, Query, Scope
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.turns import open_turns
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.turn import NewTurn
from memstory_reference.targets.turns import TurnsFactory

ANN = Scope(user="ann")


@pytest.fixture
async def factory(tmp_path):
    made = TurnsFactory()
    await made.start(tmp_path / "factory")
    yield made
    await made.stop()


@pytest.fixture(params=["sqlite", "postgres"])
async def at(request, tmp_path, factory):
    """Where a memory with three turns of ann and one of bob is: a folder, or a URL."""
    server = request.getfixturevalue("postgres_database") if request.param == "postgres" else None
    url = server and f"{server}{'&' if '?' in server else '?'}schema=own"
    embedder = factory._embedder("random", "")
    ports = MemoryPorts(embedder=embedder, clock=StoryClock(), new_id=iter("abcd").__next__)
    opened = await open_turns(TurnsSettings(store=url or str(tmp_path / "own")), ports)
    told = [NewTurn(text=f"The {thing} is old.", key=thing) for thing in ("kettle", "boat", "roof")]
    await opened.service.add("ann", told)
    await opened.service.add("bob", told[:1])
    await opened.close()
    return url or str(tmp_path / "own")


def environment(tmp_path, at, **given):
    (tmp_path / "case").mkdir(exist_ok=True)
    options = {"embedder": "random", **({} if at is None else {"at": at})}
    return Environment(workspace=str(tmp_path / "case"), options=options, **{"owner": "ann", "preloaded": True} | given)


def contents(at):
    """All that is stored there: files by their digests, or rows of tables."""
    if "://" not in at:
        return {file.name: sha256(file.read_bytes()).hexdigest() for file in Path(at).glob("*") if file.is_file()}
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(parse_place(at).url) as connection:
        return {
            table: connection.execute(f"SELECT * FROM own.{table} ORDER BY 1, 2").fetchall()  # noqa: S608
            for table in ("owners", "turns", "vectors")
        }


async def test_it_is_opened_where_it_is_says_what_it_holds_and_stays_as_it_was(tmp_path, factory, at):
    before, target = contents(at), factory.target()
    assert before
    await target.open(environment(tmp_path, at), StoryClock())
    assert (await target.about())["memories"] == "3"
    found = await target.search(Query(text="old boat", top_k=9), ANN)
    assert {hit.key for hit in found} == {"kettle", "boat", "roof"}
    await target.close()
    assert contents(at) == before
    assert not (tmp_path / "case" / "turns").exists()
    target = factory.target()
    await target.open(environment(tmp_path, at, owner="carl"), StoryClock())
    assert (await target.about())["memories"] == "0"
    await target.close()


async def test_other_cases_of_the_same_run_have_their_own_folder(tmp_path, factory, at):
    target = factory.target()
    await target.open(environment(tmp_path, at, preloaded=False), StoryClock())
    assert "memories" not in await target.about()
    assert await target.list(ANN) == []
    await target.close()


def test_only_one_that_is_told_where_the_memory_is_can_be_asked_so():
    factory = TurnsFactory()
    assert "preloaded" in factory.capabilities({"at": "notes"})
    assert "preloaded" not in factory.capabilities({})


@pytest.mark.parametrize("at", ["", "nowhere", "mysql://x/y"])
async def test_a_place_without_turns_is_refused_and_nothing_is_made_there(tmp_path, factory, at, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = factory.target()
    with pytest.raises(StoryError, match=r"no turns are stored|allowed: postgresql"):
        await target.open(environment(tmp_path, at), StoryClock())
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("version", [None, "1"])
async def test_a_schema_that_opening_would_make_or_change_is_refused_and_stays(
    tmp_path, factory, postgres_database, version
):
    url = f"{postgres_database}{'&' if '?' in postgres_database else '?'}schema=other"
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        if version:
            connection.execute("CREATE SCHEMA other")
            connection.execute("CREATE TABLE other.about AS SELECT 'schema' AS name, %s AS value", (version,))
        with pytest.raises(Refused, match="another version" if version else "holds no memory"):
            await factory.target().open(environment(tmp_path, url), StoryClock())
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'other'").fetchall()
    assert found == ([("about",)] if version else [])
