"""Whatever a caller gives is taken, or refused by one clear error; the store is the same afterwards."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import MemstoryError
from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.chunk import Utterance

WRONG = [None, 5, 1.5, True, b"x", {}, {"$ne": ""}, ["a"], "\ud800", "a\0b", "", "x" * 600, 10**5_000]


FLAGS = ("include_compressed", "rerank", "by_score")


def calls(service, wrong):
    """Each argument of each call, wrong."""
    return {
        "ingest text": lambda: service.ingest(wrong, "ann", "s"),
        "ingest user": lambda: service.ingest("x", wrong, "s"),
        "ingest session": lambda: service.ingest("x", "ann", wrong),
        "ingest hint": lambda: service.ingest("x", "ann", "s", wrong),
        "ingest_all": lambda: service.ingest_all(wrong, "ann"),
        "ingest_all list": lambda: service.ingest_all([wrong], "ann"),
        "ingest_all hint": lambda: service.ingest_all(
            [Utterance(text="x", session_id="s", memory_type_hint=wrong)], "ann"
        ),
        "ingest_all role": lambda: service.ingest_all([Utterance(text="x", session_id="s", role=wrong)], "ann"),
        "ingest_all source": lambda: service.ingest_all([Utterance(text="x", session_id="s", source=wrong)], "ann"),
        **{
            f"recall {name}": lambda name=name: service.recall("x", "ann", **{name: wrong})
            for name in ("top_k", "token_budget", "memory_types", "session_id", *FLAGS)
        },
        "recall query": lambda: service.recall(wrong, "ann"),
        "recall user": lambda: service.recall("x", wrong),
        "get": lambda: service.get(wrong, "ann"),
        "preference": lambda: service.preference(wrong, "ann"),
        "history": lambda: service.history(wrong, "ann"),
        "memories types": lambda: service.memories("ann", wrong),
        "memories limit": lambda: service.memories("ann", None, wrong),
        "update id": lambda: service.update(wrong, "x", "ann"),
        "update text": lambda: service.update("x", wrong, "ann"),
        "delete": lambda: service.delete(wrong, "ann"),
        "delete list": lambda: service.delete([wrong], "ann"),
        "import": lambda: service.import_rows(wrong, "ann"),
        "import list": lambda: service.import_rows([wrong], "ann"),
        "import name": lambda: service.import_rows([{"text": "x", "session": [10**5_000]} | {"\ud800": wrong}], "ann"),
        **{
            f"import {name}": lambda name=name: service.import_rows([{"text": "x", name: wrong}], "ann")
            for name in ("id", "text", "kind", "session", "importance", "created_at", "key", "role", "source", "vector",
                         "times_seen", "compressed", "summary_id", "replaced_by")
        },
        "compress": lambda: service.compress(wrong),
        "forget": lambda: service.forget(wrong),
        "export": lambda: service.export_rows(wrong),
        "reindex": lambda: service.reindex(wrong),
        "status": lambda: service.status(wrong),
    }  # fmt: skip


async def refusal(call):
    try:
        await call()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{type(one).__name__} {number}" for number, one in enumerate(WRONG)])
async def test_a_wrong_argument_is_taken_or_refused_by_one_clear_error(make_service, wrong):
    service = make_service(auto_compress=False)
    await service.ingest("We met Ilse in Graz", "bob", "s")
    for name, call in calls(service, wrong).items():
        said = await refusal(call)
        assert len(said) < 500, name
        assert "Give it room" not in said, name
    assert len(await service.memories("bob")) == 1


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
async def test_a_moment_beyond_all_years_is_refused(make_service, moment):
    with pytest.raises(InputError, match=r"rows\[0\].created_at"):
        await make_service().import_rows([{"text": "x", "created_at": moment}], "ann")


async def test_each_part_has_a_bound_that_a_setting_names(make_service):
    service = make_service(max_query_characters=10, max_memory_characters=20)
    with pytest.raises(InputError, match=r"query: 11 characters; at most 10 \(max_query_characters\)"):
        await service.recall("x" * 11, "ann")
    with pytest.raises(InputError, match=r"rows\[0\].text has 21 characters; at most 20 \(max_memory_characters\)"):
        await service.import_rows([{"text": "x" * 21}], "ann")
    with pytest.raises(InputError, match="text has 32 characters; at most 20"):
        await service.ingest(f"a{' ' * 30}b", "ann", "s")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


async def fuzz(service, wrong):
    for call in calls(service, wrong).values():
        with suppress(MemstoryError):
            await call()
    assert await service.centroid_drift("ann") <= 1e-6
    await service.close()


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(wrong=ANY)
async def test_fuzzed_calls_raise_nothing_raw(make_service, wrong):
    await fuzz(make_service(store_threshold=0, auto_compress=False), wrong)


@pytest.mark.slow
@settings(max_examples=2_100, deadline=None, suppress_health_check=list(HealthCheck))
@given(wrong=ANY)
async def test_a_hundred_thousand_fuzzed_calls_raise_nothing_raw(make_service, wrong):
    await fuzz(make_service(store_threshold=0, auto_compress=False), wrong)


def test_the_long_run_makes_a_hundred_thousand_calls():
    assert 2_100 * len(calls(None, None)) >= 100_000
