"""Both stores of the turns memory keep what a store promises, and give the same pool."""

from contextlib import asynccontextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count

import numpy as np
import psycopg
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.composition.turns import turns_in_folder, turns_in_postgres
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.turns.ranking import BY_ASSISTANT, IS_DATED, IS_FOREIGN, NOBODY, Pool
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn, OwnerTurns
from memstory_reference.systems.turns.turn import Conditions, NewTurn, checked_turn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST, NORTH, WEST = (np.array(row, np.float32) for row in ((1, 0), (0, 1), (-1, 0)))
ANY = Conditions()


@asynccontextmanager
async def sqlite(folder, _request, model="fixed-2"):
    store = turns_in_folder(folder / "turns", model)
    yield store
    await store.close()


@asynccontextmanager
async def postgres(folder, request, model="fixed-2"):
    store = await turns_in_postgres(postgres_place(folder, request), model)
    yield store
    await store.close()


def postgres_place(folder, request):
    schema = f"s{blake2b(str(folder).encode(), digest_size=8).hexdigest()}"
    return PostgresPlace(url=request.getfixturevalue("postgres_database"), schema=schema)


STORES = {"sqlite": sqlite, "postgres": postgres}


@pytest.fixture(params=STORES)
def opening(request, tmp_path):
    """Opens the same place each time."""
    return lambda **kwargs: STORES[request.param](tmp_path, request, **kwargs)


@pytest.fixture
async def store(opening):
    async with opening() as opened:
        yield opened


def written(identifier, text="tea", *, vector=EAST, **fields):
    turn = checked_turn(NewTurn(text=text, **fields), identifier, NOON)
    return IndexedTurn(turn=turn, vector=vector, stems=turn.stems)


def ids(found):
    return [one.id for one in found]


async def candidates(store, *asked):
    """The turns of a pool by id, each with its row."""
    pool = await store.pool("ann", *asked)
    turns = await store.by_numbers("ann", pool.numbers.tolist())
    return pool, {turns[number].id: row for row, number in enumerate(pool.numbers.tolist())}


async def test_turns_come_back_as_they_were_written_in_the_order_of_adding(store):
    first = written(
        "b",
        "Café — 猫 it's\n",
        speaker="Ann",
        session="s",
        said_at="2024-01-07",
        key="k",
        metadata={"a": [1, None, {"b": 1.5}]},
    )
    await store.put("ann", [first, written("a")])
    assert await store.list_turns("ann", ANY) == [first.turn, written("a").turn]
    assert await store.get("ann", ["a", "none", "b", "a"]) == [written("a").turn, first.turn]
    assert await store.by_keys("ann", ["k", "none"]) == {"k": first.turn}
    assert ids(await store.list_turns("ann", ANY, 1)) == ["a"]
    assert await store.count("ann") == 2
    assert set(await store.speakers("ann")) == {"Ann"}


async def test_owners_are_apart_in_every_operation(store):
    await store.put("ann", [written("x", "Ann's tea", session="s", key="k", speaker="Ann")])
    assert await store.get("bob", ["x"]) == []
    assert await store.by_keys("bob", ["k"]) == {}
    assert await store.list_turns("bob", ANY) == []
    assert not len(await store.pool("bob", EAST, ["tea"], 5, ANY))
    assert await store.delete("bob", ["x"]) == []
    assert await store.forget_session("bob", "s") == 0
    assert await store.forget_owner("bob") == 0
    assert not await store.speakers("bob")
    await store.put("bob", [written("x", "Bob's coffee")])
    assert (await store.get("ann", ["x"]))[0].text == "Ann's tea"
    assert await store.owners() == ["ann", "bob"]


async def test_a_turn_that_is_written_again_is_replaced_in_its_place(store):
    await store.put("ann", [written("a", "tea"), written("b", "milk")])
    await store.put("ann", [written("a", "cocoa", vector=NORTH)])
    assert [one.text for one in await store.list_turns("ann", ANY)] == ["cocoa", "milk"]
    pool, rows = await candidates(store, NORTH, ["tea", "cocoa"], 1, ANY)
    assert pool.holding == {"cocoa": 1}
    assert (list(rows), pool.cosines.tolist(), pool.times.tolist()) == (["a"], [1.0], [[0], [1]])


async def test_a_key_belongs_to_the_last_turn_that_took_it(store):
    await store.put("ann", [written("a", key="k")])
    await store.put("ann", [written("b", key="k")])
    assert (await store.by_keys("ann", ["k"]))["k"].id == "b"
    assert (await store.get("ann", ["a"]))[0].key is None


async def test_the_pool_has_the_nearest_the_best_by_words_and_the_turns_beside(store):
    far = [written(f"far{n}", f"filler {n}", vector=WEST) for n in range(8)]
    talk = [
        written(f"t{n}", text, vector=vector, speaker="Ann", session="s")
        for n, (text, vector) in enumerate(
            [("before", WEST), ("the boiler broke", WEST), ("after", WEST), ("last", WEST)]
        )
    ]
    await store.put("ann", [*far, *talk, written("near", "something", vector=EAST)])
    pool, rows = await candidates(store, EAST, ["boiler", "unheard"], 1, ANY)
    assert set(rows) == {"near", "t0", "t1", "t2"}
    assert (pool.before[rows["t1"]], pool.after[rows["t1"]]) == (rows["t0"], rows["t2"])
    assert pool.after[rows["t2"]] == NOBODY  # the last turn is not in the pool
    assert (pool.before[rows["near"]], pool.after[rows["near"]]) == (NOBODY, NOBODY)
    assert (pool.turns, pool.holding) == (13, {"boiler": 1})
    assert pool.mean_words == pytest.approx(23 / 13)
    assert pool.words[rows["t1"]] == 3
    assert pool.cosines[[rows["near"], rows["t1"]]].tolist() == [1.0, -1.0]


async def test_the_pool_says_of_each_turn_what_is_ranked(store):
    told = {"speaker": "Ann", "session": "s", "said_at": "2024-01-07T10:00:00.000001Z"}
    texts = {"a": "Since May we have tea.", "b": "Do you?", "n": "no more tea, tea, tea"}
    await store.put(
        "ann",
        [
            written("a", texts["a"], **told),
            written("b", texts["b"], **told | {"speaker": "assistant"}),
            written("n", texts["n"], vector=NORTH),
        ],
    )
    pool, rows = await candidates(store, EAST, ["tea", "none"], 5, ANY)
    assert list(rows) == ["a", "b", "n"]
    assert pool.times.tolist() == [[1, 0, 3], [0, 0, 0]]
    assert pool.words.tolist() == [5, 2, 5]
    assert pool.signs.tolist() == [IS_DATED, IS_DATED | BY_ASSISTANT | IS_FOREIGN, 0]
    assert pool.speakers.tolist() == [pool.named["Ann"], pool.named["assistant"], NOBODY]
    assert pool.sessions[0] == pool.sessions[1] != pool.sessions[2] == NOBODY
    assert pool.moments.tolist()[:2] == [1704621600000001] * 2
    assert pool.moments.tolist()[2] == 1767268800000000
    assert pool.vectors.tolist() == [[1, 0], [1, 0], [0, 1]]


async def test_a_turn_is_compared_with_half_of_those_beside_it_in_the_pool_or_not(store):
    told = [("a", NORTH, "s"), ("b", EAST, "s"), ("c", NORTH, "s"), ("d", NORTH, "t")]
    await store.put("ann", [written(name, vector=row, speaker="Ann", session=session) for name, row, session in told])
    pool, rows = await candidates(store, EAST, [], 1, ANY)
    assert list(rows) == ["a", "b", "c"]
    assert pool.contexts[rows["b"]] == pytest.approx(1 / 2**0.5)
    assert pool.contexts[[rows["a"], rows["c"]]].tolist() == pytest.approx([0.5 / 1.25**0.5] * 2, abs=1e-6)
    alone = Conditions(where={"n": 1})
    await store.put("ann", [written("b", vector=EAST, speaker="Ann", session="s", metadata={"n": 1})])
    pool, rows = await candidates(store, EAST, [], 1, alone)
    assert (list(rows), pool.contexts.tolist()) == (["b"], [1.0])  # nothing is known of what is not admitted


async def test_a_long_text_is_found_by_its_first_words_alone(store):
    await store.put("ann", [written("long", "boiler " * 119 + "radiator kettle"), written("short", "kettle")])
    pool, rows = await candidates(store, EAST, ["boiler", "radiat", "kettl"], 5, ANY)
    assert pool.holding == {"boiler": 1, "radiat": 1, "kettl": 1}
    assert (pool.words[rows["long"]], pool.times[:, rows["long"]].tolist()) == (120, [119, 1, 0])


async def test_a_turn_that_moves_to_another_session_is_there_in_its_place(store):
    talk = [written(name, speaker="Ann", session=session) for name, session in zip("abcde", "ststs", strict=True)]
    await store.put("ann", talk)
    await store.put("ann", [written("c", speaker="Ann", session="t")])
    pool, rows = await candidates(store, EAST, ["tea"], 9, ANY)
    assert [pool.after[rows[name]] for name in "abcd"] == [rows["e"], rows["c"], rows["d"], NOBODY]
    await store.put("ann", [written("d")])
    await store.put("ann", [written("f", speaker="Ann", session="t")])
    pool, rows = await candidates(store, EAST, ["tea"], 9, ANY)
    assert [pool.before[rows[name]] for name in "fcd"] == [rows["c"], rows["b"], NOBODY]
    assert set(pool.named) == {"Ann"}


async def test_words_are_ranked_by_bm25_of_this_owner_alone(store):
    await store.put("bob", [written(f"b{n}", "kettle kettle", vector=WEST) for n in range(20)])
    texts = {
        "rare": "the kettle sings",
        "common": "a cat and a cat",
        "often": "cat",
        "long": "cat " + "and so on " * 20,
    }
    await store.put("ann", [written(name, text, vector=WEST) for name, text in texts.items()])
    pool, rows = await candidates(store, EAST, ["kettl", "cat"], 2, ANY)
    assert pool.holding == {"kettl": 1, "cat": 3}
    assert "rare" in rows


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(kinds=("note",)), ["n"]),
        (Conditions(session="s"), ["a"]),
        (Conditions(since=datetime(2024, 2, 1, tzinfo=UTC), until=datetime(2025, 1, 1, tzinfo=UTC)), ["b"]),
        (Conditions(where={"speaker": "Ann"}), ["a"]),
        (Conditions(where={"room": 3}), ["b"]),
        (Conditions(where={"room": True}), []),
    ],
)
async def test_conditions_hold_for_lists_and_pools(store, conditions, expected):
    await store.put(
        "ann",
        [
            written("a", speaker="Ann", session="s", said_at="2024-01-07"),
            written("b", speaker="Ben", session="t", said_at="2024-03-07", metadata={"room": 3}),
            written("n", "note"),
        ],
    )
    assert ids(await store.list_turns("ann", conditions)) == expected
    _, rows = await candidates(store, EAST, ["tea", "note"], 5, conditions)
    assert list(rows) == expected


async def test_what_is_deleted_is_gone_from_lists_words_and_neighbours(store):
    await store.put("ann", [written(name, f"word{name}", speaker="Ann", session="s") for name in "abc"])
    assert await store.delete("ann", ["b", "none", "b"]) == ["b"]
    pool, rows = await candidates(store, EAST, ["wordb", "worda"], 5, ANY)
    assert pool.holding == {"worda": 1}
    assert (pool.after[rows["a"]], pool.before[rows["c"]]) == (rows["c"], rows["a"])
    await store.put("ann", [written("d", speaker="Ann", session="s")])
    assert ids(await store.list_turns("ann", ANY)) == ["a", "c", "d"]


async def test_sessions_and_owners_are_forgotten_whole(store):
    await store.put("ann", [written("a", session="s"), written("b", session="t"), written("c", session="s")])
    assert await store.forget_session("ann", "s") == 2
    assert ids(await store.list_turns("ann", ANY)) == ["b"]
    assert await store.forget_owner("ann") == 1
    assert await store.owners() == []
    await store.put("ann", [written("z")])
    assert ids(await store.list_turns("ann", ANY)) == ["z"]


async def test_a_batch_is_written_whole_or_not_at_all(store):
    await store.put("ann", [written("a", "old")])
    broken = written("c")
    broken = replace(broken, turn=replace(broken.turn, metadata={"x": object()}))
    with pytest.raises(TypeError):
        await store.put("ann", [written("a", "new", vector=NORTH), written("b"), broken])
    assert [one.text for one in await store.list_turns("ann", ANY)] == ["old"]
    pool, rows = await candidates(store, EAST, ["old"], 5, ANY)
    assert (list(rows), pool.cosines.tolist(), pool.holding) == (["a"], [1.0], {"old": 1})


async def test_vectors_of_another_dimension_are_refused(store):
    await store.put("ann", [written("a")])
    with pytest.raises(StoreConflictError, match="2 numbers"):
        await store.put("ann", [written("b", vector=np.array([1, 0, 0], np.float32))])
    with pytest.raises(StoreConflictError, match="2 numbers"):
        await store.pool("ann", np.array([1, 0, 0], np.float32), ["tea"], 5, ANY)
    assert ids(await store.list_turns("ann", ANY)) == ["a"]


async def test_a_store_opened_again_holds_the_same_and_another_model_is_refused(opening):
    async with opening() as store:
        await store.put("ann", [written("a", speaker="Ann", session="s"), written("b", speaker="Ben", session="s")])
        before = await store.pool("ann", EAST, ["tea"], 5, ANY)
    async with opening() as store:
        after = await store.pool("ann", EAST, ["tea"], 5, ANY)
        for column in fields(Pool):
            assert np.array_equal(getattr(after, column.name), getattr(before, column.name)), column.name
    with pytest.raises(StoreConflictError, match="fixed-2"):
        async with opening(model="other"):
            pass


async def test_what_is_left_after_many_were_deleted_is_found_by_its_vectors_once_it_is_read_again(opening, tmp_path):
    numbers = [number for number in range(80) if number % 3 and not 20 < number < 40]
    async with opening() as store:
        await store.put("ann", [written(str(n), vector=NORTH if n % 2 else EAST) for n in range(80)])
        await store.delete("ann", [str(n) for n in range(80) if n not in numbers])
    for matrix in tmp_path.rglob("*.f32"):
        matrix.unlink()
    async with opening() as store:
        pool, rows = await candidates(store, EAST, [], 80, ANY)
        assert list(rows) == [str(n) for n in numbers]
        assert pool.cosines.tolist() == [0.0 if n % 2 else 1.0 for n in numbers]


async def test_what_was_read_in_part_when_the_store_went_away_is_read_again_from_the_beginning(opening, monkeypatch):
    def fall(*_):
        raise UnavailableError("the store is gone")

    async with opening() as store:
        await store.put("ann", [written("a", "tea"), written("b", "milk")])
    async with opening() as store:
        with monkeypatch.context() as broken:
            broken.setattr(OwnerTurns, "compare", fall)
            with pytest.raises(UnavailableError):
                await store.count("ann")
        await store.put("ann", [written("c", "tea")])
        assert await found_by(store) == ({"a": "tea", "b": "milk", "c": "tea"}, {"tea": 2, "milk": 1}, [1.0, 1.0, 1.0])


async def found_by(store, words=("tea", "milk", "cocoa")):
    pool, rows = await candidates(store, EAST, list(words), 9, ANY)
    texts = {one.id: one.text for one in await store.list_turns("ann", ANY)}
    assert list(rows) == list(texts)
    assert await store.count("ann") == pool.turns == len(texts)
    return texts, pool.holding, pool.cosines.tolist()


async def test_what_another_process_writes_replaces_and_deletes_is_followed(tmp_path, request):
    async with postgres(tmp_path, request) as one, postgres(tmp_path, request) as other:
        await one.put("ann", [written("a", "tea", speaker="Ann", session="s"), written("b", "milk")])
        told = {"a": "tea", "b": "milk"}, {"tea": 1, "milk": 1}, [1.0, 1.0]
        assert await found_by(one) == await found_by(other) == told
        await other.put("ann", [written("c", "cocoa", vector=NORTH), written("a", "cocoa", vector=WEST)])
        told = {"a": "cocoa", "b": "milk", "c": "cocoa"}, {"milk": 1, "cocoa": 2}, [-1.0, 1.0, 0.0]
        assert await found_by(one) == await found_by(other) == told
        assert not await one.speakers("ann")
        assert await one.delete("ann", ["b"]) == ["b"]
        told = {"a": "cocoa", "c": "cocoa"}, {"cocoa": 2}, [-1.0, 0.0]
        assert await found_by(other) == await found_by(one) == told


async def test_an_owner_whom_another_process_forgot_and_made_again_has_what_is_new_alone(tmp_path, request):
    async with postgres(tmp_path, request) as one, postgres(tmp_path, request) as other:
        await one.put("ann", [written("a", "tea"), written("b", "milk")])
        await found_by(one)
        assert await other.forget_owner("ann") == 2
        assert (await one.count("ann"), await one.list_turns("ann", ANY), await one.owners()) == (0, [], [])
        await other.put("ann", [written("c", "cocoa", vector=NORTH)])
        assert await found_by(one) == ({"c": "cocoa"}, {"cocoa": 1}, [0.0])


@pytest.mark.parametrize("damage", ["text = 'toe'", "kind = 'x'", "noted_at = ''"])
async def test_a_row_that_was_changed_in_the_database_is_left_out_and_counted(tmp_path, request, damage):
    place = postgres_place(tmp_path, request)
    async with postgres(tmp_path, request) as store:
        await store.put("ann", [written("a", "tea"), written("b", "milk")])
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(f"UPDATE {place.schema}.turns SET {damage} WHERE id = 'a'")  # noqa: S608  (a test's own words)
    async with postgres(tmp_path, request) as store:
        assert ids(await store.list_turns("ann", ANY)) == ["b"]
        assert (await store.count("ann"), await store.unreadable("ann")) == (1, 1)
        await store.put("ann", [written("a", "tea", vector=NORTH)])
        assert (await found_by(store))[0] == {"a": "tea", "b": "milk"}
        assert await store.unreadable("ann") == 0


@pytest.mark.parametrize("last", [2**62, -1])
async def test_a_last_number_that_no_turn_can_have_is_one_clear_error_and_the_owner_can_be_forgotten(
    tmp_path, request, last
):
    place = postgres_place(tmp_path, request)
    async with postgres(tmp_path, request) as store:
        await store.put("ann", [written("a", "tea")])
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute(f"UPDATE {place.schema}.owners SET last = {last}")  # noqa: S608  (a test's own words)
        with pytest.raises(UnavailableError, match=f"no turn has the number {last}"):
            await store.list_turns("ann", ANY)
        with pytest.raises(UnavailableError, match=f"no turn has the number {last}"):
            await store.put("ann", [written("b")])
        assert await store.forget_owner("ann") == 1
        await store.put("ann", [written("c")])
        assert ids(await store.list_turns("ann", ANY)) == ["c"]


@pytest.mark.parametrize("owner", ["../up", "Ann", "ann", "a%", "ö" * 100, "a'b", " ann"])
async def test_odd_names_of_owners_are_names(store, owner):
    await store.put(owner, [written("a", owner)])
    await store.put("other", [written("a", "other")])
    assert (await store.get(owner, ["a"]))[0].text == owner
    assert owner in await store.owners()


class OneOfTwo:
    """A vector of the length of a text; it goes away at a text with the words `falls`."""

    model, dimension, falls = "fixed-2", 2, "never said"

    async def embed(self, texts, purpose):
        if any(self.falls in text for text in texts):
            raise UnavailableError("the embedder is gone")
        rows = np.array([[len(text) % 7 + 1, len(text) % 3] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Noon:
    def now(self):
        return NOON


def memory_in(store, embedder=None):
    numbers = count()
    return TurnsService(
        store=store, embedder=embedder or OneOfTwo(), clock=Noon(), new_id=lambda: f"id{next(numbers):03}"
    )


TOLD = [
    NewTurn(
        text=f"Tea number {number} {'is hot ' * (number % 5)}",
        speaker="Ann" if number % 3 else None,
        session=f"s{number % 2}",
        said_at=f"2024-01-{number % 28 + 1:02}" if number % 4 else None,
        key=f"k{number % 30}" if number % 2 else None,
        metadata={"room": number} if number % 5 else {},
    )
    for number in range(100)
]


async def loaded(memory, owner, new, size):
    return [stored async for stored in memory.load(owner, new, size)]


async def test_what_is_loaded_is_what_is_added_one_by_one(store):
    memory = memory_in(store)
    one_by_one = [stored for new in TOLD for stored in await memory.add("ann", [new])]
    batches = await loaded(memory_in(store), "bob", iter(TOLD), 15)
    assert [len(batch) for batch in batches] == [15] * 6 + [10]
    assert [stored for batch in batches for stored in batch] == one_by_one
    assert {stored.is_new for stored in one_by_one} == {True, False}
    assert await memory.list_turns("bob") == await memory.list_turns("ann")
    ann, bob = [await store.pool(owner, EAST, ["tea", "hot", "73"], 20, ANY) for owner in ("ann", "bob")]
    for column in {one.name for one in fields(Pool)} - {"numbers"}:
        assert np.array_equal(getattr(ann, column), getattr(bob, column)), column
    found = [[one.explain() for one in await memory.search(owner, "hot tea 73", 20)] for owner in ("ann", "bob")]
    assert len(found[0]) == 20
    assert found[0] == found[1]


async def test_a_load_that_fails_leaves_whole_batches_and_says_how_far_it_came(store):
    embedder = OneOfTwo()
    memory, done = memory_in(store, embedder), []
    embedder.falls = TOLD[37].text

    async def load():
        async for stored in memory.load("ann", TOLD, 15):
            done.extend(stored)

    with pytest.raises(UnavailableError, match=r"gone; the first 30 were loaded"):
        await load()
    assert (len(done), await store.count("ann")) == (30, len({one.turn.id for one in done}))
    wrong = [*TOLD[:4], replace(TOLD[4], text=" "), *TOLD[5:]]
    with pytest.raises(InputError, match=r"blank; the first 3 were loaded"):
        await loaded(memory, "bob", wrong, 3)

    assert await store.count("bob") == 3


async def test_a_load_takes_no_more_of_its_source_than_it_writes(store):
    taken = []

    def source():
        for number in range(50):
            taken.append(number)
            yield NewTurn(text=f"Tea {number}")

    async for stored in memory_in(store).load("ann", source(), 10):
        assert len(taken) == await store.count("ann")
        assert len(stored) == 10
    assert len(taken) == 50


async def test_a_key_that_comes_twice_in_one_batch_is_the_last_ones(store):
    await store.put("ann", [written("old", key="k"), written("b", key="j")])
    await store.put("ann", [written("a", "first", key="k"), written("b", key="k"), written("a", "second", key="k")])
    assert {key: turn.id for key, turn in (await store.by_keys("ann", ["k", "j"])).items()} == {"k": "a"}
    assert [(one.id, one.key, one.text) for one in await store.list_turns("ann", ANY)] == [
        ("old", None, "tea"),
        ("b", None, "tea"),
        ("a", "k", "second"),
    ]
