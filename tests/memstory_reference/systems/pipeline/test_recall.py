import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import Refused, SetupError, UnavailableError
from memstory.contract.target import Item, Ref, Scope
from memstory_reference.errors import InputError
from memstory_reference.ports import EmbedderUnavailableError
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk, RecalledMemory
from memstory_reference.systems.pipeline.recall import blend, fit_budget, keyword_coverage, rerank
from memstory_reference.text.words import TokenCounter

ANN, BOB = Scope(user="ann"), Scope(user="bob")

ASK = {"ask": (1, 0)}


def at(similarity):
    """A vector of this cosine to the query."""
    return [similarity, math.sqrt(1 - similarity**2), *[0] * 14]


def row(text, similarity=1.0, **fields):
    return {"text": text, "vector": at(similarity), **fields}


class Spied:
    """Notes how many rows each query asked for."""

    def __init__(self, inner):
        self.inner = inner
        self.asked = []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def similar(self, table, owner, vector, k):
        self.asked.append((owner, k))
        return await self.inner.similar(table, owner, vector, k)


class Mortal:
    """An embedder that answers until it is down."""

    model, dimension = "hashed-16", 16
    is_down = False

    def __init__(self, inner):
        self._inner = inner

    async def embed(self, texts, purpose):
        if self.is_down:
            raise EmbedderUnavailableError("down")
        return await self._inner.embed(texts, purpose)


async def texts(pipeline, query="ask", user="ann", **given):
    return [one.memory.content for one in (await pipeline.recall(query, user, **given)).memories]


@pytest.mark.parametrize(("top_k", "fetched"), [(5, 20), (3, 12)])
async def test_four_times_as_many_candidates_are_fetched_of_this_user_alone(make_pipeline, top_k, fetched):
    pipeline = make_pipeline(ASK, around_searches=Spied)
    await pipeline.import_memories([row(f"memory {number}", 0.5) for number in range(30)], "ann")
    assert len(await texts(pipeline, top_k=top_k)) == top_k
    assert pipeline._recaller.store.asked == [("ann", fetched)]


async def test_results_come_by_cosine_with_their_totals(make_pipeline):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories([row("far far", 0.2), row("near", 0.9), row("middle of it", 0.5)], "ann")
    result = await pipeline.recall("ask", "ann", token_budget=10)
    assert [one.memory.content for one in result.memories] == ["near", "middle of it", "far far"]
    assert [one.score for one in result.memories] == pytest.approx([0.9, 0.5, 0.2], abs=1e-6)
    assert (result.total_tokens, result.budget_used, result.rerank) == (6, 0.6, "off")
    assert result.token_counter == "words and marks"  # noqa: S105  (tokens of text)
    assert result.assembled_tokens == 6 + 3 * 3 + 7


async def test_ties_are_broken_by_id(make_pipeline):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories([row("b", id="2"), row("a", id="1")], "ann")
    assert await texts(pipeline) == ["a", "b"]


@pytest.mark.parametrize("given", [{"top_k": 0}, {"token_budget": 0}])
async def test_nothing_asked_for_is_nothing_found(make_pipeline, given):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories([row("near"), {"text": "I hate rain", "kind": "procedural"}], "ann")
    result = await pipeline.recall("ask", "ann", **given)
    assert (list(result.memories), result.total_tokens, result.budget_used) == ([], 0, 0.0)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"top_k": -1}, "top_k"), ({"top_k": True}, "top_k"), ({"top_k": 1.5}, "top_k"), ({"top_k": 10**6}, "top_k"),
        ({"token_budget": -1}, "token_budget"), ({"token_budget": "2"}, "token_budget"),
        ({"memory_types": ["fact"]}, "memory_types"), ({"memory_types": "semantic"}, "memory_types"),
        ({"session_id": ""}, "session_id"), ({"user_id": ""}, "user_id"), ({"query": {"$ne": ""}}, "query"),
    ],
)  # fmt: skip
async def test_a_question_without_sense_is_a_value_error(make_pipeline, given, named):
    with pytest.raises(ValueError, match=named):
        await make_pipeline(ASK).recall(**{"query": "ask", "user_id": "ann", **given})


async def test_a_blank_query_still_tells_preferences(make_pipeline, embedder):
    pipeline = make_pipeline(embedder=embedder)
    await pipeline.import_memories([row("near"), {"text": "I hate rain", "kind": "procedural"}], "ann")
    before = embedder.data()["calls"]
    assert await texts(pipeline, " \n") == ["I hate rain"]
    assert await texts(pipeline, " \n", by_score=True) == []
    assert embedder.data()["calls"] == before


async def test_preferences_need_no_embedder(make_pipeline, hashed_vectors):
    embedder = Mortal(hashed_vectors())
    pipeline = make_pipeline(embedder=embedder)
    await pipeline.import_memories([{"text": "I hate rain", "kind": "procedural"}], "ann")
    await pipeline.import_memories([row("near")], "bob")
    embedder.is_down = True
    assert await texts(pipeline) == ["I hate rain"]
    assert await texts(pipeline, user="bob", memory_types=["procedural"]) == []
    with pytest.raises(UnavailableError):
        await pipeline.recall("ask", "bob")


async def test_preferences_come_first_newest_first_beside_the_places(make_pipeline, clock):
    pipeline = make_pipeline(ASK)
    for number in range(12):
        clock.move(seconds=1)
        await pipeline.import_memories([{"text": f"I hate thing {number}", "kind": "procedural"}], "ann")
    await pipeline.import_memories([row(f"fact {number}", 0.9 - number / 10) for number in range(7)], "ann")
    found = await texts(pipeline)
    assert found[:10] == [f"I hate thing {number}" for number in range(11, 1, -1)]
    assert found[10:] == [f"fact {number}" for number in range(5)]


async def stated(pipeline, *stated, user="ann"):
    await pipeline.import_memories([{"text": text, "kind": "procedural"} for text in stated], user)


async def test_preferences_take_a_share_of_the_budget_and_what_others_leave(make_pipeline):
    pipeline = make_pipeline(ASK, procedural_share=0.5)
    await stated(pipeline, "I hate long calls at night", "I hate rain")
    await pipeline.import_memories([row("one two three"), row("four", 0.5)], "ann")
    assert await texts(pipeline, token_budget=7) == ["I hate rain", "one two three", "four"]
    assert await texts(pipeline, token_budget=12) == ["I hate rain", "one two three", "four"]
    assert await texts(pipeline, token_budget=13) == [
        "I hate rain", "I hate long calls at night", "one two three", "four",
    ]  # fmt: skip


async def test_long_preferences_leave_three_quarters_of_the_budget_to_others(make_pipeline):
    pipeline = make_pipeline(ASK)
    long = [f"place {number} {'word ' * 200}".strip() for number in range(10)]
    for text in long:
        await pipeline.ingest(text, "ann", "s", "procedural")
    await pipeline.import_memories([row(f"fact {number} {'word ' * 100}", 0.9) for number in range(20)], "ann")
    result = await pipeline.recall("ask", "ann", top_k=20)
    spent = {True: 0, False: 0}
    for one in result.memories:
        spent[one.memory.key is not None] += one.tokens
    assert 0 < spent[True] <= 500
    assert spent[False] >= 1_400


async def test_the_eleventh_preference_is_found_by_what_it_says(make_pipeline, clock):
    pipeline = make_pipeline({**ASK, "I hate thing 0": at(1.0)})
    for number in range(12):
        clock.move(seconds=1)
        await pipeline.ingest(f"I hate thing {number}", "ann", "s")
    await pipeline.import_memories([row("a fact", 0.5)], "ann")
    assert await texts(pipeline, top_k=1) == [f"I hate thing {number}" for number in [*range(11, 1, -1), 0]]
    assert (await texts(pipeline, by_score=True))[0] == "I hate thing 0"


async def test_by_score_preferences_stand_where_their_nearness_puts_them(make_pipeline):
    pipeline = make_pipeline({**ASK, "I hate rain": at(0.7), "I hate snow": at(0.1)})
    await stated(pipeline, "I hate rain", "I hate snow")
    await pipeline.import_memories([row("near", 0.9), row("far", 0.5)], "ann")
    assert await texts(pipeline, by_score=True) == ["near", "I hate rain", "far", "I hate snow"]
    assert await texts(pipeline, by_score=True, top_k=2) == ["near", "I hate rain"]
    assert await texts(pipeline, by_score=True, memory_types=["semantic"]) == []
    result = await pipeline.recall("ask", "ann", by_score=True, rerank=True)
    assert [one.score for one in result.memories] == pytest.approx([0.63, 0.49, 0.35, 0.07], abs=1e-6)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"importance": 0.19}, False),
        ({"importance": 0.2}, True),
        ({"compressed": True, "session": "told"}, False),
        ({"compressed": True, "session": "untold"}, True),
        ({"kind": "semantic"}, True),
    ],
)
async def test_what_is_slight_or_archived_is_not_recalled(make_pipeline, fields, shown):
    pipeline = make_pipeline(ASK)
    summary = {"kind": "semantic", "source_session_id": "told", "compression_source": True}
    await pipeline.import_memories([row("it", **fields), row("summary", 0.1, **summary)], "ann")
    assert ("it" in await texts(pipeline)) is shown
    if fields.get("compressed"):
        assert "it" in await texts(pipeline, include_compressed=True)


async def test_another_recall_threshold_is_another_cut(make_pipeline):
    pipeline = make_pipeline(ASK, recall_threshold=0.5)
    await pipeline.import_memories([row("slight", importance=0.49), row("enough", importance=0.5)], "ann")
    assert await texts(pipeline) == ["enough"]


@pytest.mark.parametrize(
    "hidden",
    [
        {"session": "told", "compressed": True},
        {"importance": 0.1},
        {"kind": "working", "session": "elsewhere"},
        {"kind": "semantic"},
    ],
)
async def test_what_is_near_and_not_wanted_starves_nobody(make_pipeline, hidden):
    pipeline = make_pipeline(ASK)
    summary = {"kind": "semantic", "session": "told", "source_session_id": "told", "compression_source": True}
    rows = [row("summary", 0.0, **summary), *(row(f"near {number}", 0.99, **hidden) for number in range(30))]
    await pipeline.import_memories([*rows, *(row(f"live {number}", 0.5) for number in range(5))], "ann")
    found = await texts(pipeline, memory_types=["episodic", "working"], session_id="here")
    assert sorted(found) == [f"live {number}" for number in range(5)]


async def test_working_memories_belong_to_their_session_and_to_a_day(make_pipeline, clock):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories(
        [row("here", kind="working", session="a"), row("there", kind="working", session="b")], "ann"
    )
    assert await texts(pipeline, session_id="a") == ["here"]
    clock.move(hours=24)
    assert sorted(await texts(pipeline)) == ["here", "there"]
    clock.move(microseconds=1)
    assert await texts(pipeline) == []
    assert await texts(pipeline, session_id="b") == ["there"]


async def test_tokens_are_counted_by_whoever_is_given(make_pipeline):
    pipeline = make_pipeline(
        ASK, counter=TokenCounter(name="letters", count=len), max_chunk_tokens=10, min_chunk_tokens=1
    )
    await pipeline.import_memories([row("near")], "ann")
    result = await pipeline.recall("ask", "ann", token_budget=4)
    assert (result.total_tokens, result.budget_used, result.token_counter) == (4, 1.0, "letters")
    assert [len(one.content) for one in await pipeline.ingest("one two three", "bob", "s")] == [7, 5]


async def test_what_is_forgotten_is_not_recalled_even_while_the_index_is_late(make_pipeline):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories([row("near", id="1"), row("far", 0.1, id="2")], "ann")
    assert await texts(pipeline) == ["near", "far"]
    await pipeline.delete(Ref(id="1"), ANN)
    assert await texts(pipeline) == ["far"]


async def test_vectors_are_read_again_after_reopening_and_by_reindex(make_pipeline):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories([row("near"), row("far", 0.1)], "ann")
    await pipeline.close()
    again = make_pipeline(ASK)
    assert await texts(again) == ["near", "far"]
    assert await again.run("reindex", {}, ANN) == {"reindexed": 2}
    assert await texts(again) == ["near", "far"]


async def test_longest_unused_vectors_leave_memory_and_are_found_again(make_pipeline, monkeypatch):
    monkeypatch.setattr("memstory_reference.storage.held_rows.HELD_ROWS", 2)
    pipeline = make_pipeline(ASK)
    for user in ("ann", "bob"):
        await pipeline.import_memories([row(f"near {user}"), row(f"far {user}", 0.1)], user)
        assert await texts(pipeline, user=user) == [f"near {user}", f"far {user}"]
    await pipeline.import_memories([row("middle", 0.5)], "ann")
    assert await texts(pipeline) == ["near ann", "middle", "far ann"]


async def test_write_that_fails_is_not_found(make_pipeline, monkeypatch):
    pipeline = make_pipeline(ASK)
    await pipeline.import_memories([row("near", id="1"), row("far", 0.1, id="2")], "ann")
    assert await texts(pipeline) == ["near", "far"]

    def broken(*_):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr("memstory_reference.systems.pipeline.pipeline_store.PipelineStore.release", broken)
        with pytest.raises(RuntimeError):
            await pipeline.delete(Ref(id="1"), ANN)
    assert await texts(pipeline) == ["near", "far"]


async def test_an_update_is_found_by_its_new_words_and_must_be_one_memory(make_pipeline):
    pipeline = make_pipeline({**ASK, "new words": (1, 0)}, max_chunk_tokens=5, min_chunk_tokens=1)
    await pipeline.import_memories([row("old", 0.0, id="1"), row("other", 0.5, id="2")], "ann")
    (changed,) = (await pipeline.update(Ref(id="1"), Item(text=" new words "), ANN)).items
    assert changed.text == "new words"
    assert await texts(pipeline) == ["new words", "other"]
    with pytest.raises(Refused, match="there is no memory 'none'"):
        await pipeline.update(Ref(id="none"), Item(text="new words"), ANN)
    for text in ("", "one two three four five six"):
        with pytest.raises(InputError, match="one memory holds 1 to 5"):
            await pipeline.update(Ref(id="1"), Item(text=text), ANN)


async def test_an_export_can_be_imported_and_is_the_same(make_pipeline):
    pipeline = make_pipeline(ASK)
    summary = {"kind": "semantic", "session": "s", "source_session_id": "s", "compression_source": True}
    await pipeline.import_memories(
        [row("a", session="s", compressed=True), row("b", **summary), {"text": "I hate rain", "kind": "procedural"}],
        "ann",
    )
    rows = await pipeline.export_rows(ANN)
    await pipeline.import_memories(rows, "bob")
    assert await pipeline.export_rows(BOB) == rows
    await pipeline.import_memories(rows, "bob")
    assert len(await pipeline.memories("bob")) == 3
    assert await pipeline.inspect("drift", {}, BOB) <= 1e-6


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("text", "expected a list of rows"),
        ([7], r"rows\[0\]: expected a mapping"),
        ([{"text": " "}], r"rows\[0\]: `text` must be a text that is not empty"),
        ([{"text": "x"}, {"text": "x", "weight": 1}], r"rows\[1\]: unknown field 'weight'"),
        ([{"text": "x", "importance": 2}], r"rows\[0\].importance"),
        ([{"text": "x", "importance": float("nan")}], r"rows\[0\].importance"),
        ([{"text": "x", "compressed": "yes"}], r"rows\[0\].compressed"),
        ([{"text": "x", "created_at": "noon"}], r"rows\[0\].created_at"),
        ([{"text": "x", "kind": "fact"}], r"rows\[0\].kind"),
        ([{"text": "x", "role": "boss"}], r"rows\[0\].role"),
        ([{"text": "x", "times_seen": 0}], r"rows\[0\].times_seen"),
        ([{"text": "x", "vector": [0, 0]}], r"rows\[0\].vector"),
        *(([{"text": "x", "vector": [bad] * 16}], r"rows\[0\].vector") for bad in (1e308, 10**400, True, "1", 1e-320)),
        ([{"text": "x", "vector": [1, 0]}], "vector: 2 numbers; the model hashed-16 has 16"),
    ],
)
async def test_a_row_that_cannot_be_taken_is_named_and_nothing_is_written(make_pipeline, bad, message):
    pipeline = make_pipeline()
    with pytest.raises(InputError, match=message):
        await pipeline.import_memories(bad, "ann")
    assert await pipeline.memories("ann") == []


async def test_memories_are_listed_newest_first_and_by_type(make_pipeline, clock):
    pipeline = make_pipeline()
    for number, kind in enumerate(("semantic", "procedural", "episodic")):
        clock.move(seconds=1)
        await pipeline.import_memories([{"text": f"{number}", "kind": kind}], "ann")
    assert [one.content for one in await pipeline.memories("ann")] == ["2", "1", "0"]
    assert [one.content for one in await pipeline.memories("ann", limit=2)] == ["2", "1"]
    assert [one.content for one in await pipeline.memories("ann", ["procedural"])] == ["1"]


TABLES = ("memories", "preferences", "embeddings", "centroids", "versions")


@pytest.mark.parametrize("is_each", [True, False])
async def test_of_a_user_whose_memories_are_all_forgotten_no_table_has_a_row(make_pipeline, is_each):
    pipeline = make_pipeline(store_threshold=0)
    for text in ("We met Ilse in Graz.", "I prefer window seats.", "I prefer aisle seats."):
        await pipeline.ingest(text, "ann", "s")
        await pipeline.ingest(text, "bob", "s")
    if is_each:
        every = await pipeline.memories("ann", include_replaced=True)
        for one in every:
            await pipeline.delete(Ref(id=one.id), ANN)
    else:
        await pipeline.delete(Ref(), ANN)
    left = [row["owner"] for table in TABLES for row in pipeline._database.rows(f"SELECT owner FROM {table}")]  # noqa: S608
    assert set(left) == {"bob"}


NOON = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = st.lists(st.integers(0, 50), max_size=20)


class Scorer:
    name = "scorer"

    def __init__(self, answer):
        self.answer = answer

    async def scores(self, query, texts):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def candidate(identifier, similarity, content="nothing"):
    memory = MemoryChunk(
        id=identifier, user_id="ann", session_id="s", memory_type=ChunkType.SEMANTIC, content=content, importance=1.0,
        created_at=NOON, updated_at=NOON,
    )  # fmt: skip
    return RecalledMemory(memory=memory, tokens=1, score=similarity, similarity=similarity)


CANDIDATES = [candidate("near", 1.0), candidate("middle", 0.8, "tabs"), candidate("far", 0.6, "tabs and spaces")]


def ids(found):
    return [one.memory.id for one in found]


@pytest.mark.parametrize(
    ("sizes", "budget", "most", "picked", "used"),
    [
        ([60, 50, 40, 30], 100, 5, [60, 40], 1.0),
        ([500] * 5, 2000, 5, [500] * 4, 1.0),
        ([100] * 9, 2000, 5, [100] * 5, 0.25),
        ([2001, 10], 2000, 5, [10], 0.005),
        ([700, 700, 700, 500, 100], 2000, 5, [700, 700, 500, 100], 1.0),
        ([1, 1], 10, 0, [], 0.0),
        ([], 10, 5, [], 0.0),
    ],
)
def test_what_does_not_fit_is_skipped_and_the_walk_ends_at_the_last_place(sizes, budget, most, picked, used):
    chosen = [sizes[place] for place in fit_budget(sizes, budget, most)]
    assert chosen == picked
    assert sum(chosen) / budget == pytest.approx(used)


@given(SIZES, st.integers(0, 100), st.integers(0, 10))
def test_the_budget_and_the_places_are_never_exceeded(sizes, budget, most):
    places = fit_budget(sizes, budget, most)
    assert sum(sizes[place] for place in places) <= budget
    assert len(places) <= most
    assert places == sorted(set(places))


async def test_a_model_replaces_the_cosine_and_is_named():
    found, by = await rerank("q", CANDIDATES, Scorer([-7.5, 0.0, 12.0]))
    assert (ids(found), by) == (["far", "middle", "near"], "scorer")
    assert [(one.score, one.similarity) for one in found] == [(12.0, 0.6), (0.0, 0.8), (-7.5, 1.0)]


@pytest.mark.parametrize(
    "scorer",
    [
        None,
        Scorer(SetupError("not installed")),
        Scorer(UnavailableError("down")),
        Scorer([1.0]),
        Scorer([1.0, float("nan"), 2.0]),
    ],
)
async def test_without_a_sound_model_the_blend_scores_and_is_named(scorer):
    found, by = await rerank("tabs or spaces", CANDIDATES, scorer)
    assert (ids(found), by) == (["far", "middle", "near"], "blend")
    assert [one.score for one in found] == pytest.approx([0.72, 0.71, 0.7])


async def test_an_error_of_the_program_is_not_taken_for_a_missing_model():
    with pytest.raises(ZeroDivisionError):
        await rerank("q", CANDIDATES, Scorer(ZeroDivisionError()))


async def test_equal_scores_are_ordered_by_id():
    assert ids((await rerank("q", CANDIDATES, Scorer([1.0, 1.0, 1.0])))[0]) == ["far", "middle", "near"]


def test_the_blend_is_seven_parts_cosine_and_three_parts_words():
    assert [blend(1, 0), blend(0.5, 1), blend(0, 0)] == pytest.approx([0.7, 0.65, 0.0])
    assert keyword_coverage("tabs or spaces", "Spaces.") == 0.5
    assert keyword_coverage("the of and", "anything") == 0.0
