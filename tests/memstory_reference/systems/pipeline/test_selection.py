from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.systems.pipeline.chunk import ChunkType, MemoryChunk, RecalledMemory
from memstory_reference.systems.pipeline.recall import blend, fit_budget, keyword_coverage, rerank

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
