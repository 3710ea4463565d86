"""Whatever a caller gives is taken, or refused by one clear error; the store is the same afterwards."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import MemstoryError, Refused
from memstory.contract.target import Item, Ref, Scope
from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.chunk import Utterance

ANN = Scope(user="ann")

WRONG = [None, 5, 1.5, True, b"x", {}, {"$ne": ""}, ["a"], "\ud800", "a\0b", "", "x" * 600, 10**5_000]


FLAGS = ("include_compressed", "rerank", "by_score")


def calls(pipeline, wrong):
    """Each argument of each call, wrong."""
    return {
        "ingest text": lambda: pipeline.ingest(wrong, "ann", "s"),
        "ingest user": lambda: pipeline.ingest("x", wrong, "s"),
        "ingest session": lambda: pipeline.ingest("x", "ann", wrong),
        "ingest hint": lambda: pipeline.ingest("x", "ann", "s", wrong),
        "ingest_all": lambda: pipeline.ingest_all(wrong, "ann"),
        "ingest_all list": lambda: pipeline.ingest_all([wrong], "ann"),
        "ingest_all hint": lambda: pipeline.ingest_all(
            [Utterance(text="x", session_id="s", memory_type_hint=wrong)], "ann"
        ),
        "ingest_all role": lambda: pipeline.ingest_all([Utterance(text="x", session_id="s", role=wrong)], "ann"),
        "ingest_all source": lambda: pipeline.ingest_all([Utterance(text="x", session_id="s", source=wrong)], "ann"),
        **{
            f"recall {name}": lambda name=name: pipeline.recall("x", "ann", **{name: wrong})
            for name in ("top_k", "token_budget", "memory_types", "session_id", *FLAGS)
        },
        "recall query": lambda: pipeline.recall(wrong, "ann"),
        "recall user": lambda: pipeline.recall("x", wrong),
        "get": lambda: pipeline.get(Ref(id=wrong), ANN),
        "preference": lambda: pipeline.get(Ref(key=wrong), ANN),
        "history": lambda: pipeline.history(wrong, "ann"),
        "memories types": lambda: pipeline.memories("ann", wrong),
        "memories limit": lambda: pipeline.memories("ann", None, wrong),
        "update id": lambda: pipeline.update(Ref(id=wrong), Item(text="x"), ANN),
        "update text": lambda: pipeline.update(Ref(id="x"), Item(text=wrong), ANN),
        "delete": lambda: pipeline.delete(Ref(id=wrong), ANN),
        "import": lambda: pipeline.import_memories(wrong, "ann"),
        "import list": lambda: pipeline.import_memories([wrong], "ann"),
        "import name": lambda: pipeline.import_memories(
            [{"text": "x", "session": [10**5_000]} | {"\ud800": wrong}], "ann"
        ),
        **{
            f"import {name}": lambda name=name: pipeline.import_memories([{"text": "x", name: wrong}], "ann")
            for name in ("id", "text", "kind", "session", "importance", "created_at", "key", "role", "source", "vector",
                         "times_seen", "compressed", "summary_id", "replaced_by")
        },
        "compress": lambda: pipeline.compress(wrong),
        "forget": lambda: pipeline.delete(Ref(), Scope(user=wrong)),
        "export": lambda: pipeline.export_rows(Scope(user=wrong)),
        "reindex": lambda: pipeline.run("reindex", {}, Scope(user=wrong)),
        "status": lambda: pipeline.inspect("status", {}, Scope(user=wrong)),
    }  # fmt: skip


async def refusal(call):
    try:
        await call()
    except (InputError, Refused) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{type(one).__name__} {number}" for number, one in enumerate(WRONG)])
async def test_a_wrong_argument_is_taken_or_refused_by_one_clear_error(make_pipeline, wrong):
    pipeline = make_pipeline(auto_compress=False)
    await pipeline.ingest("We met Ilse in Graz", "bob", "s")
    await pipeline.import_memories([{"id": "x", "text": "We met Alma in Linz"}], "ann")
    for name, call in calls(pipeline, wrong).items():
        said = await refusal(call)
        assert len(said) < 500, name
        assert "Give it room" not in said, name
    assert len(await pipeline.memories("bob")) == 1


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
async def test_a_moment_beyond_all_years_is_refused(make_pipeline, moment):
    with pytest.raises(InputError, match=r"rows\[0\].created_at"):
        await make_pipeline().import_memories([{"text": "x", "created_at": moment}], "ann")


async def test_each_part_has_a_bound_that_a_setting_names(make_pipeline):
    pipeline = make_pipeline(max_query_characters=10, max_memory_characters=20)
    with pytest.raises(InputError, match=r"query: 11 characters; at most 10 \(max_query_characters\)"):
        await pipeline.recall("x" * 11, "ann")
    with pytest.raises(InputError, match=r"rows\[0\].text has 21 characters; at most 20 \(max_memory_characters\)"):
        await pipeline.import_memories([{"text": "x" * 21}], "ann")
    with pytest.raises(InputError, match="text has 32 characters; at most 20"):
        await pipeline.ingest(f"a{' ' * 30}b", "ann", "s")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


async def fuzz(pipeline, wrong):
    for call in calls(pipeline, wrong).values():
        with suppress(MemstoryError):
            await call()
    assert await pipeline.inspect("drift", {}, ANN) <= 1e-6
    await pipeline.close()


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(wrong=ANY)
async def test_fuzzed_calls_raise_nothing_raw(make_pipeline, wrong):
    await fuzz(make_pipeline(store_threshold=0, auto_compress=False), wrong)


@pytest.mark.slow
@settings(max_examples=2_100, deadline=None, suppress_health_check=list(HealthCheck))
@given(wrong=ANY)
async def test_a_hundred_thousand_fuzzed_calls_raise_nothing_raw(make_pipeline, wrong):
    await fuzz(make_pipeline(store_threshold=0, auto_compress=False), wrong)


def test_the_long_run_makes_a_hundred_thousand_calls():
    assert 2_100 * len(calls(None, None)) >= 100_000
