"""One suite that every vector store passes: in memory, in SQLite, in Chroma, in Postgres."""

import asyncio
import contextlib
import itertools
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memstory_tests_waiting import eventually

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.chroma_store import open_chroma_folder, open_chroma_server
from memstory_reference.adapters.vectors.exact_store import ExactStore, open_exact_folder
from memstory_reference.composition.vector_stores import open_exact_schema
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import Record
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import drop_schemas

CHROMA = Path(sys.executable).parent / "chroma"
EAST, NORTH, WEST = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)
NAMES = itertools.count()
STORES = ("memory", "sqlite", "chroma folder", "chroma server", "postgres")


async def opened_server(port):
    async def opened():
        with contextlib.suppress(UnavailableError):
            return await open_chroma_server("127.0.0.1", port, model="fixed")

    return await eventually(opened, seconds=60)


@pytest.fixture(scope="session")
def server_port(tmp_path_factory):
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    command = [CHROMA, "run", "--path", tmp_path_factory.mktemp("server"), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  (our own)
    yield port
    process.kill()
    process.wait(10)


@pytest.fixture(scope="session")
def schema(postgres_url):
    """One for all tests, which have their own collections: to make it takes longer than a test."""
    place = PostgresPlace(url=postgres_url, schema=f"rows_{secrets.token_hex(6)}")
    yield place
    asyncio.run(drop_schemas(place))


@pytest.fixture(params=STORES)
async def store(request, tmp_path):
    match request.param:
        case "memory":
            opened = ExactStore(model="fixed")
        case "chroma folder":
            opened = await open_chroma_folder(tmp_path, tmp_path / "rows", model="fixed")
        case "chroma server":
            opened = await opened_server(request.getfixturevalue("server_port"))
        case "postgres":
            opened = await open_exact_schema(request.getfixturevalue("schema"), model="fixed")
        case _:
            opened = open_exact_folder(tmp_path, model="fixed")
    yield opened
    await opened.close()


@pytest.fixture
def collection():
    return f"rows{next(NAMES)}"


@pytest.fixture
async def index(store, collection):
    return await store.index(collection, "ana")


def row(row_id, vector=EAST, text="", **metadata):
    return Record(id=row_id, text=text or f"text of {row_id}", metadata=metadata, vector=vector)


def ids(found):
    return [one.id for one in found]


def hits(found):
    return [match.record.id for match in found]


def query(vector=EAST):
    return np.array(vector, dtype=np.float32)


async def test_row_comes_back_as_it_was_written(index):
    await index.upsert([row("a", text="Elixir", topic="user.language", turn=3, score=0.5, kept=True)])
    expected = Record(id="a", text="Elixir", metadata={"topic": "user.language", "turn": 3, "score": 0.5, "kept": True})
    assert list(await index.get(["a"])) == [expected]
    assert list(await index.list()) == [expected]
    assert (await index.query(query(), 1))[0].record == expected


async def test_none_in_metadata_is_not_stored(index):
    await index.upsert([row("a", reward=None, kind="topic"), row("b", reward=None)])
    assert [dict(one.metadata) for one in await index.list()] == [{"kind": "topic"}, {}]


async def test_upsert_replaces_text_vector_and_all_metadata(index):
    await index.upsert([row("a", EAST, "old", old=1, both=1)])
    await index.upsert([row("a", NORTH, "new", both=2)])
    assert list(await index.get(["a"])) == [Record(id="a", text="new", metadata={"both": 2})]
    assert (await index.query(query(NORTH), 1))[0].similarity == 1.0
    await index.upsert([row("a", NORTH, "new")])
    assert await index.count({"both": 2}) == 0


async def test_last_of_two_rows_with_one_id_wins(index):
    await index.upsert([row("a", text="first", x=1), row("b"), row("a", text="second")])
    assert list(await index.get(["a"])) == [Record(id="a", text="second")]
    assert await index.count() == 2


async def test_row_without_a_vector_keeps_the_vector_that_it_has(index):
    await index.upsert([row("a", NORTH, reward=0.0)])
    await index.upsert([row("a", None, reward=1.0)])
    found = await index.query(query(NORTH), 1)
    assert (found[0].similarity, dict(found[0].record.metadata)) == (1.0, {"reward": 1.0})


async def test_new_row_without_a_vector_is_refused_and_nothing_is_written(index):
    with pytest.raises(InputError, match="'b' is new and has no vector"):
        await index.upsert([row("a"), row("b", None)])
    assert await index.count() == 0


async def test_get_keeps_the_order_of_the_ids_and_skips_unknown_ones(index):
    await index.upsert([row(one) for one in "abc"])
    assert ids(await index.get(["c", "x", "a", "c", ""])) == ["c", "a"]
    assert list(await index.get([])) == []


async def test_query_ranks_by_cosine_and_ties_go_by_id(index):
    await index.upsert([row("d", NORTH), row("c", EAST), row("b", WEST), row("a", EAST), row("e", (3.0, 4.0, 0.0))])
    found = await index.query(query(), 10)
    assert hits(found) == ["a", "c", "e", "d", "b"]
    assert [match.similarity for match in found] == [1.0, 1.0, 0.6, 0.0, -1.0]


async def test_query_returns_at_most_k(index):
    await index.upsert([row(f"r{number:02}", EAST) for number in range(20)])
    assert hits(await index.query(query(), 3)) == ["r00", "r01", "r02"]
    assert list(await index.query(query(), 0)) == []
    assert list(await index.query(query(), -1)) == []
    assert len(await index.query(query(), 1_000)) == 20


async def test_ids_decide_among_more_ties_than_were_asked_for(index):
    await index.upsert([row(f"r{number:03}", EAST if number % 3 else NORTH) for number in range(150)])
    assert hits(await index.query(query(), 4)) == ["r001", "r002", "r004", "r005"]


async def test_query_vector_need_not_have_length_one(index):
    #
    await index.upsert([row("a", (0.9, 0.43588989, 0.0))])
    assert (await index.query(query((10.0, 0.0, 0.0)), 1))[0].similarity == pytest.approx(0.9, abs=1e-6)


async def test_where_wants_every_key(index):
    # LF-7
    await index.upsert([row("a", kind="topic", turn=1), row("b", kind="topic", turn=2), row("c", kind="run", turn=1)])
    assert ids(await index.list({"kind": "topic", "turn": 1})) == ["a"]
    assert hits(await index.query(query(), 5, {"kind": "topic", "turn": 1})) == ["a"]
    assert hits(await index.query(query(), 5, {"kind": "topic"})) == ["a", "b"]
    assert await index.count({"turn": 1}) == 2
    assert await index.count({"kind": "none"}) == 0
    assert ids(await index.list({})) == ["a", "b", "c"]
    assert hits(await index.query(query(), 5, {})) == ["a", "b", "c"]


async def test_where_knows_true_from_one(index):
    await index.upsert([row("int", x=1), row("float", x=1.0), row("true", x=True), row("text", x="1")])
    assert ids(await index.list({"x": 1})) == ["float", "int"]
    assert ids(await index.list({"x": 1.0})) == ["float", "int"]
    assert ids(await index.list({"x": True})) == ["true"]
    assert ids(await index.list({"x": "1"})) == ["text"]
    assert hits(await index.query(query(), 5, {"x": True})) == ["true"]


@pytest.mark.parametrize(
    "where",
    [
        {"topic": {"$ne": ""}},
        {"topic": ["a", "b"]},
        {"topic": None},
        {"$or": [{"a": 1}]},
        {"$and": "x"},
        {"topic": float("nan")},
        {"turn": 2**63},
        {"memstory:vector": "x"},
        {"chroma:document": "x"},
        "topic",
    ],
    ids=repr,
)
async def test_operator_in_a_filter_is_refused(index, where):
    await index.upsert([row("secret", topic="x")])
    for asked in (index.list(where), index.query(query(), 5, where), index.count(where)):
        with pytest.raises(InputError):
            await asked


async def test_operator_in_place_of_an_id_is_refused(index):
    await index.upsert([row("secret")])
    for asked in (index.get([{"$ne": ""}]), index.delete([{"$ne": ""}]), index.get("secret")):
        with pytest.raises(InputError):
            await asked
    assert await index.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        row(""),
        row("\ud800"),
        row(7),
        row("a", text="\udfff"),
        row("a", text={"$ne": ""}),
        row("a", (0.0, 0.0, 0.0)),
        row("a", (float("nan"), 0.0, 0.0)),
        row("a", (float("inf"), 0.0, 0.0)),
        row("a", ((1.0, 0.0, 0.0),)),
        row("a", "abc"),
        row("a", x=[1]),
        row("a", x={"y": 1}),
        row("a", x=float("nan")),
        row("a", x=float("-inf")),
        row("a", x=2**63),
        row("a", **{"chroma:document": "x"}),
        row("a", **{"memstory:vector": "x"}),
        row("a", **{"#x": 1}),
        row("a", **{"": 1}),
    ],
    ids=repr,
)
async def test_wrong_row_is_refused_with_its_whole_batch(index, wrong):
    with pytest.raises(InputError):
        await index.upsert([row("good"), wrong])
    assert await index.count() == 0


async def test_vector_of_another_dimension_is_refused(index):
    await index.upsert([row("a")])
    with pytest.raises(StoreConflictError, match="has 2 numbers, the store holds vectors of 3"):
        await index.upsert([row("b", (1.0, 0.0))])
    with pytest.raises(StoreConflictError, match="has 4 numbers, the store holds vectors of 3"):
        await index.query(query((1, 0, 0, 0)), 1)
    assert ids(await index.list()) == ["a"]


async def test_list_pages_by_id(index):
    await index.upsert([row(one) for one in ("b", "d", "a", "c")])
    assert ids(await index.list()) == ["a", "b", "c", "d"]
    assert ids(await index.list(limit=2, offset=1)) == ["b", "c"]
    assert ids(await index.list(limit=0)) == []
    assert ids(await index.list(limit=9, offset=3)) == ["d"]
    assert ids(await index.list(offset=9)) == []


async def test_negative_page_is_refused(index):
    for asked in (index.list(limit=-1), index.list(offset=-1)):
        with pytest.raises(InputError, match="limit and offset"):
            await asked


async def test_delete_returns_what_existed(index):
    await index.upsert([row(one) for one in "abc"])
    assert list(await index.delete(["x", "c", "a", "c"])) == ["c", "a"]
    assert list(await index.delete(["a"])) == []
    assert list(await index.delete([])) == []
    assert hits(await index.query(query(), 5)) == ["b"]


async def test_deleted_row_can_be_written_again(index):
    await index.upsert([row("a", EAST, "old", x=1)])
    await index.delete(["a"])
    await index.upsert([row("a", NORTH, "new")])
    assert list(await index.get(["a"])) == [Record(id="a", text="new")]


async def test_owner_who_never_wrote_has_nothing_and_is_not_listed(store, index, collection):
    assert list(await index.get(["a"])) == list(await index.list()) == list(await index.delete(["a"])) == []
    assert await index.count() == 0
    assert list(await index.query(query(), 3)) == []
    await index.upsert([])
    assert list(await store.owners(collection)) == []


async def test_owners_do_not_see_each_other(store, index, collection):
    other = await store.index(collection, "bob")
    await index.upsert([row("a", text="of ana"), row("b")])
    await other.upsert([row("a", NORTH, "of bob")])
    assert [one.text for one in await index.get(["a"])] == ["of ana"]
    assert [one.text for one in await other.list()] == ["of bob"]
    assert hits(await other.query(query(), 9)) == ["a"]
    await other.delete(["a", "b"])
    assert await index.count() == 2
    assert list(await store.owners(collection)) == ["ana", "bob"]


async def test_collections_of_one_owner_are_apart(store, index, collection):
    other = await store.index(f"{collection}.more", "ana")
    await index.upsert([row("a")])
    assert await other.count() == 0
    assert list(await store.owners(f"{collection}.more")) == []


@pytest.mark.parametrize("owner", ["a b", "Ünï/çødé", "../up", "x" * 5_000, "\0", "'; drop table", "{}"])
async def test_any_text_can_be_an_owner(store, collection, owner):
    index = await store.index(collection, owner)
    await index.upsert([row("a")])
    assert list(await store.owners(collection)) == [owner]
    assert await index.count() == 1


@pytest.mark.parametrize("owner", ["", None, 7, {"$ne": ""}, "\ud800"], ids=repr)
async def test_owner_that_is_no_text_is_refused(store, collection, owner):
    with pytest.raises(InputError, match="owner"):
        await store.index(collection, owner)


async def test_same_index_is_handed_out_twice(store, index, collection):
    await index.upsert([row("a")])
    again = await store.index(collection, "ana")
    await again.upsert([row("b", NORTH)])
    assert hits(await index.query(query(NORTH), 1)) == ["b"]


async def test_batch_of_a_thousand_rows_is_written_whole(index):
    angles = np.linspace(0, 3, 1_200)
    await index.upsert([row(f"r{n:04}", (np.cos(a), np.sin(a), 0.0), n=n) for n, a in enumerate(angles)])
    assert await index.count() == 1_200
    assert hits(await index.query(query((np.cos(1.5), np.sin(1.5), 0.0)), 1))[0] in {"r0599", "r0600"}
    assert len(await index.get([f"r{n:04}" for n in range(1_200)])) == 1_200
    assert len(await index.delete([f"r{n:04}" for n in range(1_199)])) == 1_199


async def test_concurrent_writers_lose_nothing(store, collection):
    async def write(number):
        index = await store.index(collection, f"owner{number % 3}")
        await index.upsert([row(f"r{number}")])
        await index.query(query(), 1)

    await asyncio.gather(*(write(number) for number in range(30)))
    counts = [await (await store.index(collection, f"owner{number}")).count() for number in range(3)]
    assert counts == [10, 10, 10]


async def test_closed_store_says_so(store, index):
    await index.upsert([row("a")])
    await store.close()
    await store.close()
    for asked in (index.count(), index.get(["a"]), index.upsert([row("b")]), store.index("rows", "ana")):
        with pytest.raises(UnavailableError, match="was closed"):
            await asked


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# Chroma may lose the last bit of a float of 17 digits on its way through JSON; short ones it keeps.
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-99, 99).map(lambda n: n / 8))
VALUES = st.one_of(st.none(), TEXTS, st.booleans(), NUMBERS)
KEYS = TEXTS.filter(lambda key: key and not key.startswith(("#", "$", "chroma:", "memstory:")))
VECTORS = st.tuples(*[st.integers(-3, 3)] * 3).filter(any)
RECORDS = st.builds(
    Record,
    id=st.sampled_from(["a", "b", "ä\0", " ", "x" * 300]),
    text=TEXTS,
    metadata=st.dictionaries(KEYS, VALUES, max_size=3),
    vector=VECTORS,
)
STEPS = st.one_of(
    st.tuples(st.just("upsert"), st.lists(RECORDS, max_size=4)),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(["a", "b", "ä\0", "none"]), max_size=3)),
    st.tuples(st.just("query"), VECTORS),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=6))
async def test_store_behaves_as_the_one_in_memory(store, steps):
    name = f"model{next(NAMES)}"
    real = await store.index(name, "ana")
    model = await ExactStore(model="fixed").index(name, "ana")
    for kind, value in steps:
        match kind:
            case "upsert":
                await real.upsert(value)
                await model.upsert(value)
            case "delete":
                assert list(await real.delete(value)) == list(await model.delete(value))
            case _:
                wanted, found = await model.query(query(value), 3), await real.query(query(value), 3)
                assert hits(found) == hits(wanted)
                assert [one.similarity for one in found] == pytest.approx([one.similarity for one in wanted], abs=2e-6)
        assert list(await real.list()) == list(await model.list())
