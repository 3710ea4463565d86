"""Memories on one Postgres in two processes: what one has read need not be true any more."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pytest

from memstory.contract.errors import MemstoryError
from memstory.contract.target import Item, Query, Ref, Scope
from memstory_reference import AsyncMemory
from memstory_reference.adapters.embedding.fixed_vectors import CountedWords
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.observations import open_observations
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.composition.vector_stores import no_wrap, open_exact_schema
from memstory_reference.errors import InputError, OtherModelError, StoreConflictError
from memstory_reference.ports import Record
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.systems.pipeline.pipeline_store import PipelineStore

SPAWN = get_context("spawn")
ANN, TIMES = Scope(user="ann"), 15
KEY, EAST = "user.city", (1.0, 0.0)


@asynccontextmanager
async def opened(system, url, **changes):
    given = {"store": "postgres", SYSTEMS[system].place: url, "embedding_model": "words", **changes}
    settings = SYSTEMS[system].settings(None, given, "test")
    memory = AsyncMemory(memory=await SYSTEMS[system].open(settings), owner="ann")
    try:
        yield memory
    finally:
        await memory.close()


def run(act, ready, url, *args):
    asyncio.run(act(ready, url, *args))


async def side_by_side(url, *acts):
    """Run each in a process of its own, when all of them have opened the store."""
    ready = SPAWN.Barrier(len(acts))
    processes = [SPAWN.Process(target=run, args=(act, ready, url, *args)) for act, *args in acts]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0] * len(acts)


async def count_up(ready, url):
    store = await open_exact_schema(PostgresPlace(url=url), model="fixed")
    index = await store.index("rows", "ann")
    ready.wait()
    for _ in range(TIMES):
        async with store.alone("ann"):
            found = await index.get(["counter"])
            counted = found[0].metadata["n"] if found else 0
            await index.upsert([Record(id="counter", text="", metadata={"n": counted + 1}, vector=EAST)])
    await store.close()


async def test_who_is_alone_with_an_owner_is_so_in_all_processes(postgres_database):
    await side_by_side(postgres_database, [count_up], [count_up])
    store = await open_exact_schema(PostgresPlace(url=postgres_database), model="fixed")
    (counter,) = await (await store.index("rows", "ann")).get(["counter"])
    await store.close()
    assert counter.metadata["n"] == 2 * TIMES


async def test_what_fails_while_one_is_alone_leaves_nothing_and_lets_the_next_in(postgres_database):
    store = await open_exact_schema(PostgresPlace(url=postgres_database), model="fixed")
    index = await store.index("rows", "ann")

    async def fail():
        async with store.alone("ann"):
            await index.upsert([Record(id="half", text="", vector=EAST)])
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    async with store.alone("ann"):
        assert await index.count() == 0
    await store.close()


async def test_what_a_process_holds_of_an_owner_is_read_again_once_another_has_written(postgres_database):
    stores = [await open_exact_schema(PostgresPlace(url=postgres_database), model="fixed") for _ in range(2)]
    one, other = [await store.index("rows", "ann") for store in stores]

    async def found():
        return [match.record.text for match in await one.query(np.array(EAST, np.float32), 9)]

    await one.upsert([Record(id="a", text="old", vector=EAST)])
    assert await found() == ["old"]
    await other.upsert([Record(id="a", text="new", vector=EAST), Record(id="b", text="more", vector=EAST)])
    assert await found() == ["new", "more"]
    await other.delete(["a"])
    await one.upsert([Record(id="c", text="own", vector=EAST)])
    assert await found() == ["more", "own"]

    async def fail():
        async with stores[0].alone("ann"):
            await one.delete(["b", "c"])
            assert await found() == []
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert await found() == ["more", "own"]
    for store in stores:
        await store.close()


async def say_facts(ready, url, name):
    async with opened("manager", url) as memory:
        ready.wait()
        for number in range(TIMES):
            await memory.add(f"Bees hum {number}.", kind="fact", metadata={name: number})


async def test_a_fact_that_two_processes_of_manager_say_at_once_is_one_with_the_metadata_of_both(postgres_database):
    await side_by_side(postgres_database, [say_facts, "one"], [say_facts, "other"])
    async with opened("manager", postgres_database) as memory:
        found = {hit.text: hit.metadata for hit in await memory.list()}
        assert len(await memory.list()) == TIMES
    assert found == {f"Bees hum {number}.": {"one": number, "other": number} for number in range(TIMES)}


async def set_key(ready, url, name):
    async with opened("manager", url) as memory:
        ready.wait()
        for number in range(TIMES):
            await memory.add(f"{name} {number}", key="mood", session="s")


async def test_a_context_key_that_two_processes_of_manager_write_has_one_value_that_was_written(postgres_database):
    await side_by_side(postgres_database, [set_key, "one"], [set_key, "other"])
    async with opened("manager", postgres_database) as memory:
        (kept,) = await memory.list()
    assert kept.text in {f"one {TIMES - 1}", f"other {TIMES - 1}"}


async def reword(_, url, told, said):
    async with opened("manager", url) as memory:
        (fact,) = [hit for hit in await memory.list() if hit.text == told]
        await memory.update(fact.id, said)


async def test_a_fact_that_another_process_of_manager_has_reworded_is_known_again(postgres_database):
    async with opened("manager", postgres_database) as memory:
        (kept,) = await memory.add("Bees hum.", kind="fact")
        await side_by_side(postgres_database, [reword, "Bees hum.", "Bees sing."])
        assert await memory.add("Bees  sing.", kind="fact") == [kept]
        (other,) = await memory.add("Wasps sting.", kind="fact")
        await memory.update(other, "Bees sing.")
        assert [hit.text for hit in await memory.list()] == ["Bees sing."]


async def remember_old(_, url):
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    row = {"id": "old", "kind": "conversation", "text": "User: Bees hum.", "created_at": old}
    async with opened("manager", url) as memory:
        await memory.memory.import_rows([row], ANN)


async def test_what_another_process_of_manager_has_written_is_cleaned_up_when_it_expires(postgres_database):
    async with opened("manager", postgres_database) as memory:
        await memory.add("Wasps sting.", kind="fact")
        assert await memory.run("cleanup") == {"deleted": 0}
        await side_by_side(postgres_database, [remember_old])
        assert await memory.run("cleanup") == {"deleted": 1}
        assert [hit.text for hit in await memory.list()] == ["Wasps sting."]


async def write_topic(ready, url):
    async with opened("topics", url) as memory:
        ready.wait()
        for number in range(TIMES):
            await memory.add(f"Oslo {number}", key=KEY)
            await asyncio.sleep(0.02)
            assert (await memory.memory.get(Ref(key=KEY), ANN)).text == f"Oslo {number}"


async def speak_of_it(ready, url):
    async with opened("topics", url) as memory:
        ready.wait()
        for number in range(2 * TIMES):
            await memory.add(f"My city is Bergen {number}.", kind="episodic")


async def test_a_topic_stays_as_saved_while_another_process_notes_with_it_what_was_said_since(postgres_database):
    await side_by_side(postgres_database, [write_topic], [speak_of_it])
    async with opened("topics", postgres_database) as memory:
        assert (await memory.memory.get(Ref(key=KEY), ANN)).text == f"Oslo {TIMES - 1}"


async def store_runs(ready, url, name, stored):
    async with opened("observations", url) as memory:
        ready.wait()
        for number in range(TIMES):
            item = Item(text=f"Bees hum {number}, says {name}.", key=f"run {number}")
            receipt = await memory.memory.add([item], ANN)
            with stored.get_lock():
                stored.value += receipt.items[0].outcome == "stored"


async def status(memory):
    return await memory.memory.inspect("status", {}, ANN)


def in_step(runs):
    return {"observations": runs, "unreadable": 0, "vectors": runs, "pending": 0}


async def test_a_run_that_two_processes_of_observations_store_at_once_is_stored_by_one_of_them(postgres_database):
    stored = SPAWN.Value("i")
    await side_by_side(postgres_database, [store_runs, "one", stored], [store_runs, "other", stored])
    async with opened("observations", postgres_database) as memory:
        hits = {hit.key: hit.text for hit in await memory.list()}
        assert set(hits) == {f"run {number}" for number in range(TIMES)}
        assert await status(memory) == in_step(TIMES)
        assert {hit.key: hit.text for hit in await memory.search("Bees hum", limit=TIMES)} == hits
    assert stored.value == TIMES


async def store_and_forget(ready, url):
    async with opened("observations", url) as memory:
        ready.wait()
        for number in range(2 * TIMES):
            key = f"run {number % 3}"
            await memory.add("Bees hum.", key=key)
            await memory.memory.delete(Ref(key=key), ANN)


async def search_meanwhile(ready, url):
    async with opened("observations", url) as memory:
        ready.wait()
        for _ in range(4 * TIMES):
            assert "kept" in {hit.key for hit in await memory.search("Bees hum", limit=5)}


async def test_no_index_of_observations_keeps_what_one_process_forgets_while_others_store_and_search(postgres_database):
    async with opened("observations", postgres_database) as memory:
        await memory.add("Bees hum and hum.", key="kept")
        await side_by_side(postgres_database, [store_and_forget], [store_and_forget], [search_meanwhile])
        assert [hit.key for hit in await memory.list()] == ["kept"]
        assert [hit.key for hit in await memory.search("Bees hum")] == ["kept"]
        assert await status(memory) == in_step(1)


async def make_indexes_again(ready, url):
    async with opened("observations", url) as memory:
        ready.wait()
        for _ in range(TIMES):
            await memory.run("reindex")


async def test_observations_stored_while_another_process_makes_the_indexes_again_are_in_them(postgres_database):
    stored = SPAWN.Value("i")
    await side_by_side(postgres_database, [store_runs, "one", stored], [make_indexes_again])
    async with opened("observations", postgres_database) as memory:
        assert await status(memory) == in_step(TIMES)


class HeldUp:
    """A store whose indexes write when `go` is set; `reached` is set when one is about to."""

    def __init__(self):
        self.store, self.reached, self.go = None, asyncio.Event(), asyncio.Event()

    def around(self, store):
        self.store = store
        return self

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def index(self, *names):
        index = await self.store.index(*names)
        upsert = index.upsert

        async def held_up(records):
            self.reached.set()
            await self.go.wait()
            await upsert(records)

        index.upsert = held_up
        return index


async def opened_runs(url, wrap=no_wrap):
    ports = MemoryPorts(embedder=CountedWords(), wrap=wrap, place=PostgresPlace(url=url))
    return await open_observations(ObservationsSettings(path="nowhere"), ports)


def observed(name):
    return Observation(
        id=name, title=name, narrative=f"Bees hum {name}.", facts=(), task=name, timestamp=datetime.now(UTC)
    )


@pytest.mark.parametrize(
    ("work", "meanwhile", "left"),
    [
        (lambda slow: slow.store([observed("new")], "ann"), lambda quick: quick.delete(Ref(id="new"), ANN), ["kept"]),
        (
            lambda slow: slow.run("reindex", {}, ANN),
            lambda quick: quick.store([observed("new")], "ann"),
            ["kept", "new"],
        ),
    ],
    ids=["a run that is forgotten while it is indexed", "a run that is stored while the index is made again"],
)
async def test_the_index_of_observations_has_what_the_rows_have_after(postgres_database, work, meanwhile, left):
    quick = await opened_runs(postgres_database)
    await quick.store([observed("kept")], "ann")
    slow = await opened_runs(postgres_database, (held := HeldUp()).around)
    both = [asyncio.create_task(work(slow))]
    await held.reached.wait()
    both.append(asyncio.create_task(meanwhile(quick)))
    # It waits for the other, or would be done long before.
    await asyncio.wait(both[1:], timeout=1)
    held.go.set()
    await asyncio.gather(*both)
    found = await quick.find("Bees hum", "ann", min_sim=-1)
    assert sorted(one.observation.id for one in found) == left
    assert await quick.inspect("status", {}, ANN) == in_step(len(left))
    await slow.close()
    await quick.close()


async def rate_runs(ready, url, value):
    async with opened("observations", url) as memory:
        ready.wait()
        for number in range(TIMES):
            assert await memory.memory.feedback(Ref(key=f"run {number}"), value, ANN)


async def test_of_two_ratings_that_processes_give_at_once_one_holds_and_no_run_is_passed_over(postgres_database):
    async with opened("observations", postgres_database) as memory:
        for number in range(TIMES):
            await memory.add(f"Bees hum {number}.", key=f"run {number}")
        await side_by_side(postgres_database, [rate_runs, 1.0], [rate_runs, -1.0])
        ratings = [hit.metadata["rating"] for hit in await memory.list()]
        assert len(ratings) == TIMES
        assert set(ratings) <= {1.0, -1.0}
        assert await status(memory) == in_step(TIMES)


async def test_vectors_of_observations_that_are_gone_with_their_schema_are_made_again(postgres_database):
    async with opened("observations", postgres_database) as memory:
        await memory.add("Bees hum.", key="run")
    with psycopg.connect(postgres_database, autocommit=True) as other:
        other.execute("DROP SCHEMA memstory_vectors CASCADE")
    async with opened("observations", postgres_database) as memory:
        assert await status(memory) == in_step(1)


@pytest.mark.parametrize(
    ("first", "second"), [("observations", "pipeline"), ("pipeline", "topics"), ("manager", "observations")]
)
async def test_a_schema_that_holds_another_memory_is_refused(postgres_database, first, second):
    async with opened(first, postgres_database):
        pass
    with pytest.raises(StoreConflictError, match=r"'memstory' holds a memory of .*, not of .*: name another one by"):
        async with opened(second, postgres_database):
            pass
    async with opened(second, f"{postgres_database}{'&' if '?' in postgres_database else '?'}schema=other"):
        pass


EPISODES = {"store_threshold": 0, "min_chunk_tokens": 1, "compression_threshold": 2, "auto_compress": False}


async def tell_the_same(ready, url):
    async with opened("pipeline", url, **EPISODES) as memory:
        ready.wait()
        for number in range(TIMES):
            await memory.add(f"Bees hum {number}.", kind="episodic", session="s")


async def test_a_text_that_two_processes_of_pipeline_are_told_at_once_is_one_memory_seen_twice(postgres_database):
    await side_by_side(postgres_database, [tell_the_same], [tell_the_same])
    async with opened("pipeline", postgres_database, **EPISODES) as memory:
        seen = {hit.text: hit.metadata["times_seen"] for hit in await memory.list()}
        assert len(await memory.list()) == TIMES
        assert await memory.memory.inspect("drift", {}, ANN) <= 1e-6
    assert seen == {f"Bees hum {number}.": 2 for number in range(TIMES)}


async def change_their_mind(ready, url, *seats):
    async with opened("pipeline", url) as memory:
        ready.wait()
        for number in range(TIMES):
            await memory.add(f"I prefer {seats[number % len(seats)]} seats.", session="s")


async def test_a_preference_that_two_processes_of_pipeline_change_is_one_and_the_others_are_its_history(
    postgres_database,
):
    await side_by_side(
        postgres_database, [change_their_mind, "window", "aisle"], [change_their_mind, "aisle", "window"]
    )
    async with opened("pipeline", postgres_database) as memory:
        (holds,) = await memory.list()
        (first, *past) = await memory.run("history", key=holds.key)
    assert first["replaced_by"] is None
    assert len(past) > 1
    assert all(one["replaced_by"] for one in past)


async def tell_sessions(ready, url, name):
    async with opened("pipeline", url, **EPISODES) as memory:
        ready.wait()
        for number in range(TIMES):
            await memory.add(f"{name} met Ilse{number} in town{number}.", kind="episodic", session=f"s{number}")


async def compress_meanwhile(ready, url):
    async with opened("pipeline", url, **EPISODES) as memory:
        ready.wait()
        for _ in range(2 * TIMES):
            await memory.run("compress")


async def test_sessions_that_two_processes_of_pipeline_compress_while_two_tell_more_are_summed_up_once(
    postgres_database,
):
    telling = [[tell_sessions, name] for name in ("Bob", "Eve")]
    await side_by_side(postgres_database, *telling, [compress_meanwhile], [compress_meanwhile])
    async with opened("pipeline", postgres_database, **EPISODES) as memory:
        await memory.run("compress", until_quiet=True)
        assert await memory.memory.inspect("drift", {}, ANN) <= 1e-6
        rows = await memory.memory.export_rows(ANN)
    told = sorted(row["text"] for row in rows if row["kind"] == "episodic")
    assert told == sorted(f"{name} met Ilse{n} in town{n}." for name in ("Bob", "Eve") for n in range(TIMES))
    summaries = {row["id"]: row for row in rows if row["compression_source"]}
    archived = [row for row in rows if row["compressed"]]
    assert {row["summary_id"] for row in archived} == summaries.keys()
    assert all(row["session"] == summaries[row["summary_id"]]["session"] for row in archived)
    assert len({row["text"] for row in summaries.values()}) == len(summaries), "no memory is summed up twice"


async def test_a_process_of_pipeline_finds_what_another_has_written_reworded_and_forgotten(postgres_database):
    async with (
        opened("pipeline", postgres_database, **EPISODES) as one,
        opened("pipeline", postgres_database, **EPISODES) as other,
    ):
        await one.add("The ferry leaves at nine.", kind="episodic")
        assert [hit.text for hit in await other.search("ferry")] == ["The ferry leaves at nine."]
        (kept,) = await one.add("Bees hum.", kind="episodic")
        (seat,) = await one.add("I prefer window seats.")
        assert {kept, seat} <= {hit.id for hit in await other.search("bees seats")}
        await one.update(kept, "Wasps sting.")
        assert (await other.search("wasps"))[0].id == kept
        await one.delete(kept)
        await one.add("I prefer aisle seats.")
        assert kept not in {hit.id for hit in await other.search("wasps")}
        assert seat not in {hit.id for hit in await other.search("window seats")}
        await one.memory.delete(Ref(), ANN)
        assert await other.search("ferry") == []
        found = await status(other)
        assert (found["vectors"], found["set_aside"]) == (0, 0)


@pytest.mark.parametrize(
    ("system", "store", "read"),
    [("observations", ObservationsStore, "ids_by_words"), ("pipeline", PipelineStore, "admit")],
)
async def test_a_slow_search_of_one_owner_holds_up_no_other(postgres_database, monkeypatch, system, store, read):
    plain = getattr(store, read)

    def slow(self, owner, *rest):
        if owner == "ann":
            self._db.execute("SELECT pg_advisory_xact_lock(7)")
        return plain(self, owner, *rest)

    monkeypatch.setattr(store, read, slow)
    text, bob = "The ferry to Torg leaves at nine.", Scope(user="bob")
    async with opened(system, postgres_database) as memory:
        for scope in (ANN, bob):
            await memory.memory.add([Item(text=text)], scope)
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT pg_advisory_xact_lock(7)")
            of_ann = asyncio.create_task(memory.memory.search(Query(text=text), ANN))
            async with asyncio.timeout(60):
                found = await memory.memory.search(Query(text=text), bob)
            assert not of_ann.done()
        assert [[one.text for one in hits] for hits in (found, await of_ann)] == [[text], [text]]


@pytest.mark.parametrize("system", ["manager", "observations", "pipeline", "topics"])
@pytest.mark.parametrize("wrong", ["password", "port"])
async def test_a_server_that_refuses_or_is_away_is_one_line_without_the_password(postgres_database, system, wrong):
    parts = urlsplit(postgres_database)
    url = postgres_database.replace(parts.password, "sesame")
    if wrong == "port":
        url = "postgresql://ann:sesame@127.0.0.1:1/work"
    with pytest.raises(MemstoryError, match=r"^Postgres (refuses|does not answer)") as refusal:
        async with opened(system, url):
            pass
    assert "sesame" not in str(refusal.value)
    assert str(refusal.value).count("\n") == 0


@pytest.mark.parametrize(
    ("system", "given"),
    [
        ("manager", {"store": "postgres", "path": "here"}),
        ("manager", {"store": "chroma", "path": "postgresql://ann:sesame@db/work"}),
        ("observations", {"store": "postgres", "path": "here"}),
        ("observations", {"store": "chroma", "path": "postgresql://ann:sesame@db/work"}),
        ("observations", {"path": "mysql://ann:sesame@db/work"}),
        ("pipeline", {"store": "postgres", "path": "here"}),
        ("pipeline", {"path": "mysql://ann:sesame@db/work"}),
        ("topics", {"store": "postgres", "chroma_path": "here"}),
        ("topics", {"store": "chroma", "chroma_path": "postgresql://ann:sesame@db/work"}),
        ("topics", {"chroma_path": "mysql://ann:sesame@db/work"}),
    ],
    ids=str,
)
async def test_a_store_and_a_place_that_do_not_go_together_are_refused_without_the_password(system, given):
    settings = SYSTEMS[system].settings(None, {"embedding_model": "words", **given}, "test")
    with pytest.raises(InputError, match="postgresql://USER") as refusal:
        await SYSTEMS[system].open(settings)
    assert "sesame" not in str(refusal.value)


@pytest.mark.parametrize("name", ["observations", "topics"])
async def test_another_model_than_that_of_the_schema_is_refused_and_texts_are_read_without_it(postgres_database, name):
    async with opened(name, postgres_database) as memory:
        await memory.add("Oslo", key=KEY)
    with pytest.raises(OtherModelError, match=r"made with the model 'words-512'"):
        async with opened(name, postgres_database, embedding_model="random"):
            pass
    system = SYSTEMS[name]
    settings = system.settings(None, {system.place: postgres_database, "embedding_model": "random"}, "test")
    memory = await system.open_to_read(settings)
    assert [hit.text for hit in await memory.list(ANN)] == ["Oslo"]
    await memory.close()
