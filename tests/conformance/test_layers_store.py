"""One suite that every store of the layers passes: in memory, SQLite and Postgres; another is one more entry in STORES.

C-22, C-24, CF-6, CF-11.
"""

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.sql_database import IN_MEMORY
from memstory_reference.systems.layers import layers_store, records
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.records import (
    Arc,
    Candidate,
    Decision,
    Fact,
    Layer,
    MemoryRecord,
    Rule,
    SessionMemoryBuffer,
    Standing,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST, NORTH, WEST = (np.array(row, np.float32) for row in ((1, 0), (0, 1), (-1, 0)))
SECOND = timedelta(seconds=1)


@asynccontextmanager
async def in_memory(_folder, _request):
    store = LayersStore(layers_database(IN_MEMORY, model="fixed-2"))
    yield store
    await store.aclose()


@asynccontextmanager
async def sqlite(folder, _request):
    store = LayersStore(layers_database(folder / "memory.sqlite3", model="fixed-2"))
    yield store
    await store.aclose()


@asynccontextmanager
async def postgres(folder, request):
    # A folder stands for one store here as for SQLite: it has its own schema.
    schema = f"s{blake2b(str(folder).encode(), digest_size=8).hexdigest()}"
    place = PostgresPlace(url=request.getfixturevalue("postgres_database"), schema=schema)
    store = await layers_in_postgres(place, model="fixed-2")
    yield store
    await store.aclose()


STORES = {"memory": in_memory, "sqlite": sqlite, "postgres": postgres}
DURABLE = ["sqlite", "postgres"]


@pytest.fixture(params=STORES)
async def store(request, tmp_path):
    async with STORES[request.param](tmp_path, request) as opened:
        yield opened


def fact(identifier, text="tea", *, owner="ann", vector=EAST, at=NOON, standing=Standing.ACTIVE, **changes):
    content = Fact(category="note", subject="User", predicate="LIKES", object=text, evidence_quote=f"I like {text}")
    record = MemoryRecord(
        id=identifier,
        owner=owner,
        content=content,
        created_at=at,
        updated_at=at,
        session="s",
        standing=standing,
        vector=vector,
    )
    return replace(record, **changes)


def arc(identifier, summary, at=NOON, owner="ann"):
    content = Arc(summary=summary, topics=("boats",), turns=3, by="model")
    return MemoryRecord(id=identifier, owner=owner, content=content, created_at=at, updated_at=at, vector=EAST)


def rule(identifier, text="Answer briefly.", at=NOON):
    content = Rule(rule=text, explicit=True, evidence_quote="be brief")
    return MemoryRecord(id=identifier, owner="ann", content=content, created_at=at, updated_at=at)


def buffer(session="s", owner="ann", last_at=NOON):
    held = Candidate(
        id="c",
        content=Fact(category="note", subject="User", predicate="OWNS", object="a boat", evidence_quote="my boat"),
        turns=(1, 2),
        decision=Decision.REPEAT,
        reason="hedged",
    )
    empty = SessionMemoryBuffer(owner=owner, session=session, arc_id="a", started_at=NOON, last_at=last_at)
    return empty.add_turn("Grüße 猫", "Hello", last_at).with_held([held])


class BreaksAtSecond(Sequence):
    """A batch of which the second record cannot be had."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, place):
        if place == 1:
            raise UnavailableError("gone")
        return self.records[place]


def ids(found):
    return [one.id for one in found]


def bare(record):
    return replace(record, vector=None)


async def test_every_layer_comes_back_as_it_was_put(store):
    records = [fact("f", '猫 "q" \\ \n', count=3), arc("a", "They talked."), rule("r")]
    await store.aput_batch(records)
    assert await store.aget("ann", ["r", "missing", "f", "a", "f"]) == [
        bare(records[2]),
        bare(records[0]),
        bare(records[1]),
    ]


async def test_ids_that_no_text_can_be_are_nobodys(store):
    await store.aput(fact("f"))
    assert await store.aget("ann", ["\0", "\ud800", "f"]) == await store.aget("ann", ["f"])
    assert await store.adelete("ann", ["\0", "\ud800"]) == []


async def test_contents_of_every_character_come_back(store):
    text = "nul \0 lone \ud800 quote ' \\ 猫"
    await store.aput(fact("f", text))
    assert (await store.aget("ann", ["f"]))[0].content.object == text


async def test_turns_of_every_character_come_back(store):
    spoken = buffer().add_turn("nul \0 lone \ud800", "half \udfff", NOON)
    await store.asave(spoken)
    assert await store.aload("ann", "s") == spoken


async def test_a_put_replaces_the_row_of_the_same_id(store):
    await store.aput(fact("f", "tea"))
    await store.aput(fact("f", "coffee", vector=NORTH, count=2))
    (found,) = await store.alist("ann")
    assert (found.content.object, found.count) == ("coffee", 2)
    assert ids(await store.asearch_tokens("ann", Layer.SEMANTIC, {"tea"}, 5)) == []
    assert [(one.id, one.score) for one in await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)] == [
        ("f", pytest.approx(0.0))
    ]


async def test_a_row_keeps_its_vector_while_its_text_is_unchanged(store):
    await store.aput(fact("f", "tea"))
    (read,) = await store.aget("ann", ["f"])
    await store.aput(replace(read, count=2))
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == ["f"]
    await store.aput(fact("f", "coffee", vector=None))
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == []
    assert ids(await store.awithout_vector("ann", 5)) == ["f"]


async def test_similar_rows_come_best_first_then_newer_then_by_id(store):
    await store.aput_batch(
        [fact("b", at=NOON), fact("a", at=NOON), fact("new", at=NOON + SECOND), fact("far", vector=WEST)]
    )
    found = await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 10)
    assert ids(found) == ["new", "a", "b", "far"]
    assert [one.score for one in found] == pytest.approx([1, 1, 1, -1])
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 2)) == ["new", "a"]


async def test_a_vector_without_direction_is_no_vector(store):
    await store.aput(fact("f", vector=np.zeros(2, np.float32)))
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == []
    assert await store.asearch_similar("ann", Layer.SEMANTIC, np.zeros(2, np.float32), 5) == []
    assert ids(await store.awithout_vector("ann", 5)) == ["f"]


async def test_tokens_are_scored_by_their_recall(store):
    await store.aput_batch(
        [fact("both", "green tea"), fact("one", "green shoes", at=NOON + SECOND), fact("none", "red")]
    )
    found = await store.asearch_tokens("ann", Layer.SEMANTIC, {"green", "tea", "pot", "kettle"}, 5)
    assert [(one.id, one.score) for one in found] == [("both", 0.5), ("one", 0.25)]
    assert await store.asearch_tokens("ann", Layer.SEMANTIC, set(), 5) == []
    assert await store.asearch_tokens("bob", Layer.SEMANTIC, {"tea"}, 5) == []


async def test_rows_and_the_session_they_come_from_are_written_both_or_neither(store):
    broken = replace(buffer(), missed={1: [object()]})
    with pytest.raises(TypeError):
        await store.aput_batch([fact("f")], broken)
    assert await store.alist("ann") == []
    assert await store.aload("ann", "s") is None
    await store.aput_batch([fact("f")], buffer())
    assert ids(await store.alist("ann")) == ["f"]
    assert await store.aload("ann", "s") == buffer()


async def test_tokens_of_every_script_are_found(store):
    await store.aput_batch([fact("han", "我喜欢猫"), fact("cyrillic", "Привет, мир!"), fact("accent", "cafe\u0301")])
    for token, expected in (("猫", "han"), ("мир", "cyrillic"), ("café", "accent")):
        assert ids(await store.asearch_tokens("ann", Layer.SEMANTIC, {token}, 5)) == [expected]


async def test_since_includes_its_own_moment(store):
    await store.aput_batch(
        [arc("old", "a boat", NOON - SECOND), arc("edge", "a boat", NOON), arc("new", "a boat", NOON + SECOND)]
    )
    assert ids(await store.asearch_similar("ann", Layer.EPISODIC, EAST, 5, NOON)) == ["new", "edge"]
    assert ids(await store.asearch_tokens("ann", Layer.EPISODIC, {"boat"}, 5, NOON)) == ["new", "edge"]


async def test_the_latest_is_the_newest_active_row_whatever_its_age(store):
    assert await store.alatest("ann", Layer.EPISODIC) is None
    await store.aput_batch([arc("old", "x", NOON), arc("new", "y", NOON + SECOND), fact("f", at=NOON + 2 * SECOND)])
    assert (await store.alatest("ann", Layer.EPISODIC)).id == "new"
    await store.aput(replace(arc("new", "y", NOON + SECOND), standing=Standing.ARCHIVED))
    assert (await store.alatest("ann", Layer.EPISODIC)).id == "old"


@pytest.mark.parametrize("standing", [Standing.SUPERSEDED, Standing.ARCHIVED])
async def test_only_active_rows_are_retrieved(store, standing):
    await store.aput_batch([fact("f"), fact("g", "coffee", superseded_by="f", standing=standing)])
    assert ids(await store.alist("ann")) == ["f"]
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == ["f"]
    assert ids(await store.asearch_tokens("ann", Layer.SEMANTIC, {"coffee"}, 5)) == []
    assert ids(await store.alist("ann", Layer.SEMANTIC, [standing])) == ["g"]
    assert (await store.aget("ann", ["g"]))[0].superseded_by == "f"
    assert await store.acounts("ann") == {(Layer.SEMANTIC, Standing.ACTIVE): 1, (Layer.SEMANTIC, standing): 1}


async def test_a_row_that_is_active_again_is_found_again_by_both_searches(store):
    await store.aput(fact("f"))
    await store.aput(fact("f", standing=Standing.ARCHIVED, vector=None))
    await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)
    await store.aput(fact("f", vector=None))
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == ["f"]
    assert ids(await store.asearch_tokens("ann", Layer.SEMANTIC, {"tea"}, 5)) == ["f"]


async def test_rows_are_listed_newest_first_and_cut(store):
    await store.aput_batch([fact("b"), fact("a"), fact("z", at=NOON + SECOND), rule("r", at=NOON + 2 * SECOND)])
    assert ids(await store.alist("ann")) == ["r", "z", "a", "b"]
    assert ids(await store.alist("ann", Layer.SEMANTIC, limit=2)) == ["z", "a"]


async def test_a_batch_that_breaks_at_its_second_record_leaves_none(store):
    await store.aput(fact("old", "old tea"))
    with pytest.raises(UnavailableError):
        await store.aput_batch(BreaksAtSecond([fact("old", "changed"), fact("b"), fact("c")]))
    assert [one.content.object for one in await store.alist("ann")] == ["old tea"]
    assert ids(await store.asearch_tokens("ann", Layer.SEMANTIC, {"changed"}, 5)) == []
    await store.aput_batch([fact("b"), fact("c")])
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == ["b", "c", "old"]


async def test_owners_never_meet_under_one_id(store):
    await store.aput_batch([fact("f", "tea"), fact("f", "coffee", owner="bob")])
    assert (await store.aget("ann", ["f"]))[0].content.object == "tea"
    assert await store.adelete("bob", ["f", "f", "missing"]) == ["f"]
    assert ids(await store.alist("ann")) == ["f"]
    assert await store.alist("bob") == []
    assert await store.acounts("bob") == {}


async def test_deleted_rows_leave_nothing_to_find(store):
    await store.aput_batch([fact("f"), fact("g"), arc("a", "x")])
    await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)
    assert await store.adelete("ann", ["f"]) == ["f"]
    assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == ["g"]
    assert ids(await store.asearch_tokens("ann", Layer.SEMANTIC, {"tea"}, 5)) == ["g"]
    assert await store.adelete_owner("ann") == 2
    assert await store.alist("ann", None, list(Standing)) == []
    assert await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5) == []


async def test_buffers_come_back_as_they_were_saved(store):
    saved = buffer()
    await store.asave(saved)
    assert await store.aload("ann", "s") == saved
    assert await store.aload("bob", "s") is None
    await store.asave(saved.with_extracted(1))
    assert (await store.aload("ann", "s")).turns[0].extracted


async def test_a_session_that_was_read_with_its_last_turns_is_written_over_the_whole_one(store):
    saved = buffer().add_turn("two", "2", NOON).add_turn("three", "3", NOON)
    await store.asave(saved)
    late = await store.aload("ann", "s", last=1)
    assert [turn.user for turn in late.turns] == ["three"]
    assert (await store.aload("ann", "s", last=0)).turns == ()
    await store.asave(late.with_extracted(3).add_turn("four", "4", NOON + SECOND))
    found = await store.aload("ann", "s")
    assert [(turn.number, turn.user, turn.extracted) for turn in found.turns] == [
        (1, "Grüße 猫", False),
        (2, "two", False),
        (3, "three", True),
        (4, "four", False),
    ]
    assert (found.turn_count, found.held) == (4, saved.held)


async def test_a_session_keeps_the_words_of_its_last_turns_alone(store, monkeypatch):
    for module in (records, layers_store):
        monkeypatch.setattr(module, "MAX_TURNS", 3)
    await store.asave(buffer())
    for number in range(2, 6):
        one = await store.aload("ann", "s", last=1)
        await store.asave(one.with_extracted(one.turn_count).add_turn(str(number), "", NOON))
    found = await store.aload("ann", "s")
    assert [turn.number for turn in found.turns] == [3, 4, 5]
    assert found.turn_count == 5


async def test_a_session_keeps_the_words_of_turns_that_nobody_has_looked_at(store, monkeypatch):
    for module in (records, layers_store):
        monkeypatch.setattr(module, "MAX_TURNS", 3)
    await store.asave(buffer())
    for number in range(2, 6):
        one = await store.aload("ann", "s", last=1)
        await store.asave((one if number == 2 else one.with_extracted(number - 1)).add_turn(str(number), "", NOON))
    assert [turn.number for turn in (await store.aload("ann", "s")).turns] == [1, 3, 4, 5]


async def test_a_session_knows_the_turns_at_which_a_model_failed(store):
    await store.asave(buffer().with_missed(1, ["semantic"]))
    assert (await store.aload("ann", "s", last=0)).missed == {1: ("semantic",)}
    (active,) = await store.aactive("ann")
    assert active.missed == {1: ("semantic",)}
    await store.asave((await store.aload("ann", "s")).with_extracted(1))
    assert (await store.aload("ann", "s")).missed == {}


async def test_a_session_that_ends_takes_its_turns_along(store):
    await store.asave(buffer())
    await store.aend("ann", "s", [])
    await store.asave(buffer().with_extracted(1))
    assert (await store.aload("ann", "s")).turns[0].extracted
    await store.aforget_sessions("ann")
    await store.asave(replace(buffer(), turns=()))
    assert (await store.aload("ann", "s")).turns == ()


async def test_active_sessions_come_the_longest_silent_first(store):
    await store.asave(buffer("late", last_at=NOON + SECOND))
    await store.asave(buffer("early"))
    await store.asave(buffer("other", owner="bob", last_at=NOON + 2 * SECOND))
    assert [one.session for one in await store.aactive()] == ["early", "late", "other"]
    assert [one.session for one in await store.aactive("bob")] == ["other"]
    assert await store.aforget_sessions("ann") == 2
    assert [one.session for one in await store.aactive()] == ["other"]


async def test_a_session_ends_once_with_all_that_it_leaves(store):
    await store.asave(buffer())
    assert await store.aend("ann", "s", [arc("a", "x"), fact("f")])
    assert await store.aload("ann", "s") is None
    assert not await store.aend("ann", "s", [fact("second")])
    assert sorted(ids(await store.alist("ann"))) == ["a", "f"]


async def test_an_end_that_breaks_leaves_the_session_active_and_nothing_written(store):
    await store.asave(buffer())
    with pytest.raises(UnavailableError):
        await store.aend("ann", "s", BreaksAtSecond([arc("a", "x"), fact("f")]))
    assert await store.aload("ann", "s") is not None
    assert await store.alist("ann") == []


async def test_the_session_key_is_long_and_stays(store):
    key = await store.asession_key()
    assert len(key) >= 16
    assert await store.asession_key() == key


async def test_a_lock_keeps_others_out_and_names_are_apart(store):
    order = []

    async def work(name, mark):
        async with store.lock(name):
            order.append(f"{mark} in")
            await asyncio.sleep(0.01)
            order.append(f"{mark} out")

    await asyncio.gather(work("a", 1), work("a", 2))
    assert order in (["1 in", "1 out", "2 in", "2 out"], ["2 in", "2 out", "1 in", "1 out"])
    async with store.lock("a"), store.lock("b"):
        pass


async def test_concurrent_writers_lose_nothing(store):
    await asyncio.gather(*(store.aput(fact(f"f{number:02}", f"tea {number}")) for number in range(20)))
    assert len(await store.alist("ann")) == 20
    assert len(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 50)) == 20


@pytest.mark.parametrize("name", DURABLE)
async def test_what_was_put_outlives_the_store(name, tmp_path, request):
    async with STORES[name](tmp_path, request) as store:
        key = await store.asession_key()
        await store.aput_batch([fact("f"), arc("a", "They talked."), rule("r")])
        await store.asave(buffer())
    async with STORES[name](tmp_path, request) as store:
        assert await store.aget("ann", ["f", "a", "r"]) == [
            bare(fact("f")),
            bare(arc("a", "They talked.")),
            bare(rule("r")),
        ]
        assert ids(await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)) == ["f"]
        assert ids(await store.asearch_tokens("ann", Layer.EPISODIC, {"boats"}, 5)) == ["a"]
        assert await store.aload("ann", "s") == buffer()
        assert await store.asession_key() == key


TEXTS = st.sampled_from(["green tea", "black tea", "green shoes", "a red boat", "猫"])
WRITES = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        TEXTS,
        st.sampled_from(list(Standing)),
        st.sampled_from([EAST, NORTH, WEST, None]),
        st.booleans(),
    ),
    max_size=20,
)


@pytest.mark.parametrize("name", [name for name in STORES if name != "memory"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=WRITES)
async def test_a_store_answers_as_the_one_in_memory_does(name, writes, tmp_path_factory, request):
    async with STORES[name](tmp_path_factory.mktemp("store"), request) as other, in_memory(None, None) as memory:
        for number, (identifier, text, standing, vector, removes) in enumerate(writes):
            for store in (memory, other):
                if removes:
                    await store.adelete("ann", [identifier])
                else:
                    at = NOON + number * SECOND
                    await store.aput(fact(identifier, text, standing=standing, vector=vector, at=at))
        for ask in (
            lambda store: store.alist("ann", None, list(Standing)),
            lambda store: store.asearch_tokens("ann", Layer.SEMANTIC, {"green", "tea", "猫"}, 10),
            lambda store: store.asearch_similar("ann", Layer.SEMANTIC, EAST, 10),
            lambda store: store.awithout_vector("ann", 10),
            lambda store: store.acounts("ann"),
        ):
            assert await ask(other) == await ask(memory)
