import asyncio
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk, Utterance

EAST, NORTH, WEST = (1, 0), (0, 1), (-1, 0)
COMPASS = {"the east": EAST, "the north": NORTH, "eastward again": EAST, "the west": WEST}


def said(text, session="s", **fields):
    return Utterance(text=text, session_id=session, **fields)


async def outcomes(service, *texts, user="ann"):
    receipts = await service.ingest_all([said(text) for text in texts], user)
    return [(str(one.outcome), one.importance and round(one.importance, 7)) for row in receipts for one in row]


async def test_ingest_returns_the_chunks_that_were_kept(make_service):
    service = make_service(COMPASS)
    (kept,) = await service.ingest("the east", "ann", "s")
    assert isinstance(kept, MemoryChunk)
    assert (kept.content, kept.memory_type, kept.importance) == ("the east", "episodic", 0.6)
    await service.ingest("the north", "ann", "s")
    assert await service.ingest("eastward again", "ann", "s") == []


@pytest.mark.parametrize("text", ["", " \n\n "])
async def test_an_empty_text_is_taken_and_nothing_kept(make_service, embedder, text):
    service = make_service(embedder=embedder)
    assert await service.ingest(text, "ann", "s") == []
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
async def test_a_call_without_sense_is_a_value_error_that_names_the_argument(make_service, user, session, hint, named):
    service = make_service()
    with pytest.raises(ValueError, match=named) as caught:
        await service.ingest("the east", user, session, hint)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("fields", "named"), [({"role": "boss"}, "role"), ({"source": ""}, "source"), ({"text": {"$ne": ""}}, "text")]
)
async def test_an_utterance_without_sense_is_refused(make_service, fields, named):
    with pytest.raises(InputError, match=named):
        await make_service().ingest_all([Utterance(**{"text": "x", "session_id": "s", **fields})], "ann")


async def test_an_enormous_text_is_refused_and_says_what_to_do(make_service):
    service = make_service(max_text_characters=10)
    with pytest.raises(InputError, match="11 characters; at most 10"):
        await service.ingest("x" * 11, "ann", "s")


async def test_the_numbers_of_the_specification(make_service):
    vectors = {**COMPASS, "eastward with Ilse": EAST, "my favorite way is east": EAST}
    service = make_service(vectors)
    assert await outcomes(service, "the east") == [("stored", 0.6)]
    assert await outcomes(service, "the north") == [("stored", 0.6)]
    assert await outcomes(service, "eastward again") == [("discarded", 0.1757359)]
    assert await outcomes(service, "eastward with Ilse") == [("discarded", 0.2957359)]
    assert await outcomes(service, "my favorite way is east") == [("stored", 0.3357359)]
    assert await outcomes(service, "the west") == [("stored", 0.6)]


async def test_a_receipt_says_why(make_service):
    service = make_service(COMPASS)
    ((stored,),) = await service.ingest_all([said("the east")], "ann")
    ((bumped,),) = await service.ingest_all([said("the east")], "ann")
    ((discarded,),) = await service.ingest_all([said("eastward again")], "ann")
    assert (stored.reason, stored.importance) == ("importance 0.600 reaches 0.3", 0.6)
    assert bumped.reason == "the same text is stored already and was now seen 2 times"
    assert (discarded.reason, discarded.memory) == ("importance 0.000 is below 0.3", None)
    assert discarded.importance == pytest.approx(0.0, abs=1e-7)


async def test_texts_taken_together_end_as_if_they_had_come_one_by_one(make_service):
    texts = ["the east", "the north", "eastward again", "the east", "the west", "I prefer tabs", "I prefer spaces"]
    service = make_service(COMPASS)
    one_by_one = [(await outcomes(service, text, user="ann"))[0] for text in texts]
    assert await outcomes(service, *texts, user="bob") == one_by_one
    ann, bob = [[one.content for one in await service.memories(user)] for user in ("ann", "bob")]
    assert sorted(ann) == sorted(bob)


async def test_all_chunks_of_a_text_are_weighed_against_the_memory_before_it(make_service):
    service = make_service({"one went out": EAST, "two came in": EAST}, min_chunk_tokens=1)
    assert await outcomes(service, "one went out\n\ntwo came in") == [("stored", 0.6), ("stored", 0.68)]


async def test_six_chunks_are_one_call_and_what_is_known_none(make_service, embedder):
    service = make_service(embedder=embedder, min_chunk_tokens=1)
    text = "Ann is.\n\nBob is.\n\nCid is.\n\nDan is.\n\nEve is.\n\nFay is."
    await service.ingest(text, "ann", "s")
    await service.ingest(text, "ann", "s")
    assert [embedder.data()[key] for key in ("calls", "texts")] == [1, 6]
    await service.ingest("Ann is.\n\nGus is.\n\nHal is.\n\nGus is.\n\nBob is.\n\nIda is.", "ann", "s")
    assert [embedder.data()[key] for key in ("calls", "texts")] == [2, 9]


async def test_what_was_discarded_is_not_embedded_again(make_service, embedder):
    embedder._inner.vectors = COMPASS
    service = make_service(embedder=embedder)
    assert await outcomes(service, "the east", "eastward again") == [("stored", 0.6), ("discarded", 0.0)]
    assert await outcomes(service, "eastward again") == [("discarded", 0.0)]
    assert embedder.data()["calls"] == 1


async def test_the_cache_belongs_to_its_user_and_is_bounded(make_service, embedder):
    # SEC-6, SEC-13: the store is of one model, and no user learns from another's cache.
    service = make_service(embedder=embedder, store_threshold=1, cached_embeddings=2)
    await outcomes(service, "one", "two", "three")
    assert (await service.status("ann"))["cached"] == 2
    await outcomes(service, "three", user="bob")
    assert embedder.data()["calls"] == 2
    await outcomes(service, "two", "three")
    assert embedder.data()["calls"] == 2


async def test_importance_of_exactly_the_threshold_is_kept(make_service):
    service = make_service({"base": EAST, "half new": (0.5, math.sqrt(0.75)), "nearly": (0.51, math.sqrt(1 - 0.51**2))})
    await service.ingest("base", "ann", "s")
    assert await outcomes(service, "nearly") == [("discarded", 0.294)]
    assert (await outcomes(service, "half new"))[0][0] == "stored"


async def test_a_preference_goes_to_the_key_value_store_alone(make_service):
    service = make_service()
    await service.ingest("I prefer tabs", "ann", "s")
    await service.settle()
    counts = await service.status("ann")
    assert (counts["procedural"], counts["vectors"], counts["episodic"]) == (1, 0, 0)
    assert (await service.preference("prefer:indentation", "ann")).content == "I prefer tabs"
    assert await service.preference("prefer:indentation", "bob") is None


async def test_a_preference_that_changes_a_key_is_kept_however_near(make_service, clock):
    vectors = {"the east": EAST, "I prefer tabs": NORTH, "I prefer spaces": EAST, "I hate rain": EAST}
    service = make_service(vectors)
    await outcomes(service, "I prefer tabs", "the east")
    clock.move(hours=1)
    ((receipt,),) = await service.ingest_all([said("I prefer spaces")], "ann")
    assert (receipt.outcome, receipt.importance) == ("updated", pytest.approx(0.16))
    (kept,) = await service.memories("ann", ["procedural"])
    assert (kept.content, kept.updated_at) == ("I prefer spaces", clock.now())
    assert await outcomes(service, "I hate rain") == [("discarded", 0.16)]


async def test_an_archived_or_working_twin_of_another_session_is_no_twin(make_service):
    service = make_service(store_threshold=0)
    first = await service.ingest_all([said("right now we rest", "one")], "ann")
    second = await service.ingest_all([said("right now we rest", "two")], "ann")
    assert [str(row[0].outcome) for row in (*first, *second)] == ["stored", "stored"]


@pytest.mark.parametrize("kind", ["working", "semantic", "episodic", "procedural"])
async def test_a_hint_wins(make_service, kind):
    (kept,) = await make_service().ingest("I prefer tabs right now", "ann", "s", kind)
    assert kept.memory_type is ChunkType(kind)


CARD = "My card is 4111 1111 1111 1111."


async def test_a_secret_is_kept_out_on_every_way_in_and_is_not_even_embedded(make_service, embedder):  # SEC-12
    service = make_service(embedder=embedder, secrets="refuse")
    (kept,) = await service.ingest("We met Ilse in Graz", "ann", "s")
    before = embedder.data()["texts"]
    ((receipt,),) = await service.ingest_all([said(CARD)], "ann")
    assert receipt.outcome == "discarded"
    assert "it holds the number of a payment card" in receipt.reason
    for refused in (service.update(kept.id, CARD, "ann"), service.import_rows([{"text": CARD}], "ann")):
        with pytest.raises(InputError, match="the number of a payment card") as caught:
            await refused
        assert "4111" not in str(caught.value)
    assert [one.content for one in await service.memories("ann")] == ["We met Ilse in Graz"]
    assert embedder.data()["texts"] == before
    assert (await service.status("ann"))["cached"] == 0


async def test_a_text_is_stored_without_its_secret(make_service, embedder):
    service = make_service(embedder=embedder)
    (kept,) = await service.ingest(f"I moved to Linz. {CARD}", "ann", "s")
    assert kept.content.startswith("I moved to Linz.")
    (row,) = await service.import_rows([{"text": CARD, "vector": [1.0] * 16}], "ann")
    changed = await service.update(kept.id, CARD, "ann")
    assert not any("4111" in one.content for one in (kept, row, changed))
    assert "4111" not in str(embedder.data())


async def test_a_setting_lets_secrets_in(make_service):
    service = make_service(secrets="keep")
    assert len(await service.ingest(CARD, "ann", "s")) == 1


async def test_the_same_text_said_at_once_by_many_is_one_memory(make_service):
    service = make_service()
    await asyncio.gather(*(service.ingest("the east", "ann", "s") for _ in range(20)))
    (kept,) = await service.memories("ann")
    assert kept.times_seen == 20


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "delete", "update", "compress"]), st.integers(0, 12)), min_size=1, max_size=20
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(changes=CHANGES)
async def test_the_centroid_is_the_mean_of_the_rows_after_any_mix_of_changes(make_service, clock, changes):
    service = make_service(compression_threshold=1, store_threshold=0, auto_compress=False)
    await service.forget("ann")
    for what, number in changes:
        clock.move(seconds=1)
        stored = [one for one in await service.memories("ann") if one.key is None]
        if what == "add":
            await service.ingest(f"event {number} happened", "ann", f"session {number % 4}")
        elif what == "compress":
            await service.compress("ann")
        elif stored and what == "delete":
            await service.delete([stored[number % len(stored)].id], "ann")
        elif stored:
            await service.update(stored[number % len(stored)].id, f"changed to {number}", "ann")
        assert await service.centroid_drift("ann") <= 1e-6
    await service.settle()
    assert (await service.status("ann"))["pending"] == 0
    shown = [one for one in await service.memories("ann") if not one.is_archived]
    assert (await service.status("ann"))["vectors"] == len(shown)


async def test_vectors_are_kept_as_they_came(make_service):
    service = make_service(COMPASS)
    await outcomes(service, "the east", "the north")
    assert np.allclose(service._store.read_for_ingest("ann").centroid[:2], [0.5, 0.5])
