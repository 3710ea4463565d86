import asyncio
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.target import Item, Ref, Scope
from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk, Utterance
from memstory_reference.systems.pipeline.ingest import centroid, importance, novelty, salience
from memstory_reference.systems.pipeline.reading import Signals

ANN, BOB = Scope(user="ann"), Scope(user="bob")

EAST, NORTH, WEST = (1, 0), (0, 1), (-1, 0)
COMPASS = {"the east": EAST, "the north": NORTH, "eastward again": EAST, "the west": WEST}


def said(text, session="s", **fields):
    return Utterance(text=text, session_id=session, **fields)


async def outcomes(pipeline, *texts, user="ann"):
    receipts = await pipeline.ingest_all([said(text) for text in texts], user)
    return [(str(one.outcome), one.importance and round(one.importance, 7)) for row in receipts for one in row]


async def test_ingest_returns_the_chunks_that_were_kept(make_pipeline):
    pipeline = make_pipeline(COMPASS)
    (kept,) = await pipeline.ingest("the east", "ann", "s")
    assert isinstance(kept, MemoryChunk)
    assert (kept.content, kept.memory_type, kept.importance) == ("the east", "episodic", 0.6)
    await pipeline.ingest("the north", "ann", "s")
    assert await pipeline.ingest("eastward again", "ann", "s") == []


@pytest.mark.parametrize("text", ["", " \n\n "])
async def test_an_empty_text_is_taken_and_nothing_kept(make_pipeline, embedder, text):
    pipeline = make_pipeline(embedder=embedder)
    assert await pipeline.ingest(text, "ann", "s") == []
    assert embedder.data()["calls"] == 0


@pytest.mark.parametrize(
    ("user", "session", "hint", "named"),
    [
        ("", "s", None, "user_id"),
        (" ", "s", None, "user_id"),
        (None, "s", None, "user_id"),
        ({"$ne": ""}, "s", None, "user_id"),
        ("u" * 600, "s", None, "user_id"),
        ("\ud800", "s", None, "user_id"),
        ("ann", "", None, "session_id"),
        ("ann", "s", "preference", "memory_type_hint"),
        ("ann", "s", 7, "memory_type_hint"),
    ],
)
async def test_a_call_without_sense_is_a_value_error_that_names_the_argument(make_pipeline, user, session, hint, named):
    pipeline = make_pipeline()
    with pytest.raises(ValueError, match=named) as caught:
        await pipeline.ingest("the east", user, session, hint)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("fields", "named"), [({"role": "boss"}, "role"), ({"source": ""}, "source"), ({"text": {"$ne": ""}}, "text")]
)
async def test_an_utterance_without_sense_is_refused(make_pipeline, fields, named):
    with pytest.raises(InputError, match=named):
        await make_pipeline().ingest_all([Utterance(**{"text": "x", "session_id": "s", **fields})], "ann")


async def test_an_enormous_text_is_refused_and_says_what_to_do(make_pipeline):
    pipeline = make_pipeline(max_text_characters=10)
    with pytest.raises(InputError, match="11 characters; at most 10"):
        await pipeline.ingest("x" * 11, "ann", "s")


async def test_the_numbers_of_the_specification(make_pipeline):
    vectors = {**COMPASS, "eastward with Ilse": EAST, "my favorite way is east": EAST}
    pipeline = make_pipeline(vectors)
    assert await outcomes(pipeline, "the east") == [("stored", 0.6)]
    assert await outcomes(pipeline, "the north") == [("stored", 0.6)]
    assert await outcomes(pipeline, "eastward again") == [("discarded", 0.1757359)]
    assert await outcomes(pipeline, "eastward with Ilse") == [("discarded", 0.2957359)]
    assert await outcomes(pipeline, "my favorite way is east") == [("stored", 0.3357359)]
    assert await outcomes(pipeline, "the west") == [("stored", 0.6)]


async def test_a_receipt_says_why(make_pipeline):
    pipeline = make_pipeline(COMPASS)
    ((stored,),) = await pipeline.ingest_all([said("the east")], "ann")
    ((bumped,),) = await pipeline.ingest_all([said("the east")], "ann")
    ((discarded,),) = await pipeline.ingest_all([said("eastward again")], "ann")
    assert (stored.reason, stored.importance) == ("importance 0.600 reaches 0.3", 0.6)
    assert bumped.reason == "the same text is stored already and was now seen 2 times"
    assert (discarded.reason, discarded.memory) == ("importance 0.000 is below 0.3", None)
    assert discarded.importance == pytest.approx(0.0, abs=1e-7)


async def test_texts_taken_together_end_as_if_they_had_come_one_by_one(make_pipeline):
    texts = ["the east", "the north", "eastward again", "the east", "the west", "I prefer tabs", "I prefer spaces"]
    pipeline = make_pipeline(COMPASS)
    one_by_one = [(await outcomes(pipeline, text, user="ann"))[0] for text in texts]
    assert await outcomes(pipeline, *texts, user="bob") == one_by_one
    ann, bob = [[one.content for one in await pipeline.memories(user)] for user in ("ann", "bob")]
    assert sorted(ann) == sorted(bob)


async def test_all_chunks_of_a_text_are_weighed_against_the_memory_before_it(make_pipeline):
    pipeline = make_pipeline({"one went out": EAST, "two came in": EAST}, min_chunk_tokens=1)
    assert await outcomes(pipeline, "one went out\n\ntwo came in") == [("stored", 0.6), ("stored", 0.68)]


async def test_six_chunks_are_one_call_and_what_is_known_none(make_pipeline, embedder):
    pipeline = make_pipeline(embedder=embedder, min_chunk_tokens=1)
    text = "Ann is.\n\nBob is.\n\nCid is.\n\nDan is.\n\nEve is.\n\nFay is."
    await pipeline.ingest(text, "ann", "s")
    await pipeline.ingest(text, "ann", "s")
    assert [embedder.data()[key] for key in ("calls", "texts")] == [1, 6]
    await pipeline.ingest("Ann is.\n\nGus is.\n\nHal is.\n\nGus is.\n\nBob is.\n\nIda is.", "ann", "s")
    assert [embedder.data()[key] for key in ("calls", "texts")] == [2, 9]


async def test_what_was_discarded_is_not_embedded_again(make_pipeline, embedder):
    embedder._inner.vectors = COMPASS
    pipeline = make_pipeline(embedder=embedder)
    assert await outcomes(pipeline, "the east", "eastward again") == [("stored", 0.6), ("discarded", 0.0)]
    assert await outcomes(pipeline, "eastward again") == [("discarded", 0.0)]
    assert embedder.data()["calls"] == 1


async def test_the_cache_belongs_to_its_user_and_is_bounded(make_pipeline, embedder):
    # SEC-6, SEC-13: the store is of one model, and no user learns from another's cache.
    pipeline = make_pipeline(embedder=embedder, store_threshold=1, cached_embeddings=2)
    await outcomes(pipeline, "one", "two", "three")
    assert (await pipeline.inspect("status", {}, ANN))["cached"] == 2
    await outcomes(pipeline, "three", user="bob")
    assert embedder.data()["calls"] == 2
    await outcomes(pipeline, "two", "three")
    assert embedder.data()["calls"] == 2


async def test_importance_of_exactly_the_threshold_is_kept(make_pipeline):
    pipeline = make_pipeline(
        {"base": EAST, "half new": (0.5, math.sqrt(0.75)), "nearly": (0.51, math.sqrt(1 - 0.51**2))}
    )
    await pipeline.ingest("base", "ann", "s")
    assert await outcomes(pipeline, "nearly") == [("discarded", 0.294)]
    assert (await outcomes(pipeline, "half new"))[0][0] == "stored"


async def test_a_preference_goes_to_the_key_value_store_alone(make_pipeline):
    pipeline = make_pipeline()
    await pipeline.ingest("I prefer tabs", "ann", "s")
    await pipeline.settle()
    counts = await pipeline.inspect("status", {}, ANN)
    assert (counts["procedural"], counts["vectors"], counts["episodic"]) == (1, 0, 0)
    assert (await pipeline.get(Ref(key="prefer:indentation"), ANN)).text == "I prefer tabs"
    assert await pipeline.get(Ref(key="prefer:indentation"), BOB) is None


async def test_a_preference_that_changes_a_key_is_kept_however_near(make_pipeline, clock):
    vectors = {"the east": EAST, "I prefer tabs": NORTH, "I prefer spaces": EAST, "I hate rain": EAST}
    pipeline = make_pipeline(vectors)
    await outcomes(pipeline, "I prefer tabs", "the east")
    clock.move(hours=1)
    ((receipt,),) = await pipeline.ingest_all([said("I prefer spaces")], "ann")
    assert (receipt.outcome, receipt.importance) == ("updated", pytest.approx(0.16))
    (kept,) = await pipeline.memories("ann", ["procedural"])
    assert (kept.content, kept.updated_at) == ("I prefer spaces", clock.now())
    assert await outcomes(pipeline, "I hate rain") == [("discarded", 0.16)]


async def test_an_archived_or_working_twin_of_another_session_is_no_twin(make_pipeline):
    pipeline = make_pipeline(store_threshold=0)
    first = await pipeline.ingest_all([said("right now we rest", "one")], "ann")
    second = await pipeline.ingest_all([said("right now we rest", "two")], "ann")
    assert [str(row[0].outcome) for row in (*first, *second)] == ["stored", "stored"]


@pytest.mark.parametrize("kind", ["working", "semantic", "episodic", "procedural"])
async def test_a_hint_wins(make_pipeline, kind):
    (kept,) = await make_pipeline().ingest("I prefer tabs right now", "ann", "s", kind)
    assert kept.memory_type is ChunkType(kind)


CARD = "My card is 4111 1111 1111 1111."


async def test_a_secret_is_kept_out_on_every_way_in_and_is_not_even_embedded(make_pipeline, embedder):  # SEC-12
    pipeline = make_pipeline(embedder=embedder, secrets="refuse")
    (kept,) = await pipeline.ingest("We met Ilse in Graz", "ann", "s")
    before = embedder.data()["texts"]
    ((receipt,),) = await pipeline.ingest_all([said(CARD)], "ann")
    assert receipt.outcome == "discarded"
    assert "it holds the number of a payment card" in receipt.reason
    for refused in (
        pipeline.update(Ref(id=kept.id), Item(text=CARD), ANN),
        pipeline.import_memories([{"text": CARD}], "ann"),
    ):
        with pytest.raises(InputError, match="the number of a payment card") as caught:
            await refused
        assert "4111" not in str(caught.value)
    assert [one.content for one in await pipeline.memories("ann")] == ["We met Ilse in Graz"]
    assert embedder.data()["texts"] == before
    assert (await pipeline.inspect("status", {}, ANN))["cached"] == 0


async def test_a_text_is_stored_without_its_secret(make_pipeline, embedder):
    pipeline = make_pipeline(embedder=embedder)
    (kept,) = await pipeline.ingest(f"I moved to Linz. {CARD}", "ann", "s")
    assert kept.content.startswith("I moved to Linz.")
    (row,) = await pipeline.import_memories([{"text": CARD, "vector": [1.0] * 16}], "ann")
    (changed,) = (await pipeline.update(Ref(id=kept.id), Item(text=CARD), ANN)).items
    assert not any("4111" in text for text in (kept.content, row.content, changed.text))
    assert "4111" not in str(embedder.data())


async def test_a_setting_lets_secrets_in(make_pipeline):
    pipeline = make_pipeline(secrets="keep")
    assert len(await pipeline.ingest(CARD, "ann", "s")) == 1


async def test_the_same_text_said_at_once_by_many_is_one_memory(make_pipeline):
    pipeline = make_pipeline()
    await asyncio.gather(*(pipeline.ingest("the east", "ann", "s") for _ in range(20)))
    (kept,) = await pipeline.memories("ann")
    assert kept.times_seen == 20


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "delete", "update", "compress"]), st.integers(0, 12)), min_size=1, max_size=20
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(changes=CHANGES)
async def test_the_centroid_is_the_mean_of_the_rows_after_any_mix_of_changes(make_pipeline, clock, changes):
    pipeline = make_pipeline(compression_threshold=1, store_threshold=0, auto_compress=False)
    await pipeline.delete(Ref(), ANN)
    for what, number in changes:
        clock.move(seconds=1)
        stored = [one for one in await pipeline.memories("ann") if one.key is None]
        if what == "add":
            await pipeline.ingest(f"event {number} happened", "ann", f"session {number % 4}")
        elif what == "compress":
            await pipeline.compress("ann")
        elif stored and what == "delete":
            await pipeline.delete(Ref(id=stored[number % len(stored)].id), ANN)
        elif stored:
            await pipeline.update(Ref(id=stored[number % len(stored)].id), Item(text=f"changed to {number}"), ANN)
        assert await pipeline.inspect("drift", {}, ANN) <= 1e-6
    await pipeline.settle()
    assert (await pipeline.inspect("status", {}, ANN))["pending"] == 0
    shown = [one for one in await pipeline.memories("ann") if not one.is_archived]
    assert (await pipeline.inspect("status", {}, ANN))["vectors"] == len(shown)


async def test_vectors_are_kept_as_they_came(make_pipeline):
    pipeline = make_pipeline(COMPASS)
    await outcomes(pipeline, "the east", "the north")
    assert np.allclose(pipeline._store.read_for_ingest("ann").centroid[:2], [0.5, 0.5])


UNIT = st.floats(0, 1)


@pytest.mark.parametrize(
    ("new", "salient", "expected"),
    [
        (1, 0, 0.60), (1, 0.3, 0.72), (1, 0.4, 0.76), (1, 0.9, 0.96), (1, 1, 1.0), (0, 1, 0.40), (0, 0.9, 0.36),
        (0, 0.8, 0.32), (0, 0.7, 0.28), (0.5, 0, 0.30), (0.49, 0, 0.294), (0.3, 0.3, 0.30), (0.1, 0.5, 0.26),
        (0.2, 0.5, 0.32), (0.1, 0.4, 0.22),
    ],
)  # fmt: skip
def test_importance_is_as_tabled(new, salient, expected):
    assert importance(new, salient) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("salient", "least"),
    [(0, 0.5), (0.1, 0.433333333), (0.2, 0.366666667), (0.3, 0.3), (0.4, 0.233333333), (0.5, 0.166666667), (0.6, 0.1),
     (0.7, 0.033333333), (0.75, 0.0), (1.0, 0.0)],
)  # fmt: skip
def test_the_least_novelty_to_be_kept_is_as_tabled(salient, least):
    assert importance(least, salient) >= 0.3 - 1e-9
    assert least == 0 or importance(least - 1e-6, salient) < 0.3


@pytest.mark.parametrize(
    ("vector", "memories", "expected"),
    [
        ((1, 0), [], 1.0),
        ((1, 0), [(1, 0), (0, 1)], 1 - math.sqrt(0.5)),
        ((-1, 0), [(1, 0), (0, 1)], 1.0),
        ((0, 1), [(1, 0)], 1.0),
        ((1, 0), [(1, 0)], 0.0),
        ((1, 0), [(1, 0), (-1, 0)], 1.0),
    ],
)
def test_novelty_is_the_distance_to_the_mean_of_what_is_known(vector, memories, expected):
    assert novelty(np.array(vector), centroid(memories)) == pytest.approx(expected, abs=1e-9)


def test_each_signal_has_its_weight_and_all_make_exactly_one():
    weights = {"has_entity": 0.3, "has_number": 0.2, "has_preference": 0.4, "is_technical": 0.1}
    assert {name: salience(Signals(**{name: True})) for name in weights} == weights
    assert salience(Signals(**dict.fromkeys(weights, True))) == 1.0
    assert salience(Signals()) == 0.0


@given(UNIT, UNIT)
def test_importance_stays_between_nothing_and_one(new, salient):
    assert 0.0 <= importance(new, salient) <= 1.0


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=8))
def test_novelty_stays_between_nothing_and_one(vectors):
    assert 0.0 <= novelty(np.array(vectors[0]), centroid(vectors)) <= 1.0
