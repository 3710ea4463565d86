"""What of a turn is looked up, and how ranked lists are fused (C-06)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.machine import SystemClock
from memstory_reference.systems.layers.identity import OwnerSession
from memstory_reference.systems.layers.recall import Retrieval, fuse, rrf_score
from memstory_reference.systems.layers.settings import LayersSettings

LISTS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4)


@pytest.mark.parametrize(
    ("ranks", "score"),
    [
        ([1, 1], 0.0327868852),
        ([1, 2], 0.0325224749),
        ([2, 2], 0.0322580645),
        ([3, 3], 0.0317460317),
        ([1, 10], 0.0306791569),
        ([1, None], 0.0163934426),
        ([61, 61], 0.0165289256),
        ([None, None], 0.0),
    ],
)
def test_the_worked_numbers(ranks, score):
    assert rrf_score(ranks) == pytest.approx(score, abs=1e-10)


def test_third_in_both_lists_beats_first_in_one():
    scores = fuse([["x", "y", "both"], ["u", "v", "both"]])
    assert max(scores, key=scores.__getitem__) == "both"


def test_a_name_counts_once_in_a_list():
    assert fuse([["a", "a", "b"]]) == {"a": pytest.approx(1 / 61), "b": pytest.approx(1 / 62)}


@given(LISTS)
def test_a_score_is_that_of_the_ranks(lists):
    scores = fuse(lists)
    assert set(scores) == {name for ranked in lists for name in ranked}
    for name, score in scores.items():
        ranks = [ranked.index(name) + 1 if name in ranked else None for ranked in lists]
        assert score == pytest.approx(rrf_score(ranks))


WHO = OwnerSession(owner="user:ann", session="-")


class AskedError(Exception):
    """Has what was to be embedded."""


class Embeddings:
    async def of_query(self, text):
        raise AskedError(text)


@pytest.mark.parametrize(
    ("said", "looked_up"),
    [
        ("Good morning! Where do I live?", "Where do I live?"),
        ("Where do I live? Thanks.", "Where do I live?"),
        ("Hello there.", "Hello there."),
    ],
)
async def test_a_courtesy_beside_a_question_is_no_part_of_what_is_looked_up(said, looked_up):
    retrieval = Retrieval(store=None, embeddings=Embeddings(), config=LayersSettings())
    with pytest.raises(AskedError) as caught:
        await retrieval.load_turn(WHO, said, now=SystemClock().now(), turns=0, lists=False)
    assert str(caught.value) == looked_up
