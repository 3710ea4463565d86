import doctest

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from memstory.scoring import metrics
from memstory.scoring.metrics import (
    is_stale_first,
    mean,
    ndcg_at_k,
    precision_at_k,
    recall_all_at_k,
    recall_at_k,
    reciprocal_rank,
    success_at_k,
)

IDS = [f"d{number}" for number in range(30)]
RETRIEVED = ["b", "a", "c"]
RELEVANT = {"a", "c"}


def test_the_worked_example_gives_the_worked_numbers():
    assert precision_at_k(RETRIEVED, RELEVANT, 3) == pytest.approx(2 / 3)
    assert recall_at_k(RETRIEVED, RELEVANT, 3) == 1
    assert recall_all_at_k(RETRIEVED, RELEVANT, 3) == 1
    assert recall_all_at_k(RETRIEVED, RELEVANT, 2) == 0
    assert success_at_k(RETRIEVED, RELEVANT, 1) == 0
    assert success_at_k(RETRIEVED, RELEVANT, 2) == 1
    assert reciprocal_rank(RETRIEVED, RELEVANT) == 0.5
    assert ndcg_at_k(RETRIEVED, RELEVANT, 3) == pytest.approx(0.6934264036, abs=1e-10)


def test_doctests_hold():
    assert doctest.testmod(metrics).failed == 0


def test_precision_keeps_k_as_denominator_when_fewer_came_back():
    assert precision_at_k(["a"], RELEVANT, 10) == 0.1


def test_a_duplicate_takes_one_place_and_counts_once():
    doubled = ["a", "a", "a", "c"]
    assert recall_at_k(doubled, RELEVANT, 2) == 1
    assert precision_at_k(doubled, RELEVANT, 4) == 0.5
    assert ndcg_at_k(doubled, RELEVANT, 2) == 1
    assert reciprocal_rank(["b", "b", "a"], {"a"}) == 0.5


def test_more_gold_than_k_can_still_reach_a_perfect_ndcg():
    assert ndcg_at_k(["d1", "d2"], set(IDS), 2) == 1
    assert recall_at_k(["d1", "d2"], set(IDS), 2) == pytest.approx(2 / 30)


def test_nothing_retrieved_scores_zero():
    assert recall_at_k([], RELEVANT, 5) == 0
    assert ndcg_at_k([], RELEVANT, 5) == 0
    assert reciprocal_rank([], RELEVANT) == 0


@pytest.mark.parametrize("score", [recall_at_k, recall_all_at_k, precision_at_k, success_at_k, ndcg_at_k])
def test_no_gold_and_no_k_are_refused_instead_of_scored(score):
    with pytest.raises(ValueError, match="abstention"):
        score(RETRIEVED, set(), 3)
    with pytest.raises(ValueError, match="k is 0"):
        score(RETRIEVED, RELEVANT, 0)


@pytest.mark.parametrize(
    ("retrieved", "is_first"),
    [
        (["x", "old", "new"], 1),
        (["new", "old"], 0),
        (["older"], 1),
        (["x", "new"], 0),
        (["x"], 0),
        ([], 0),
    ],
)
def test_an_outdated_document_counts_where_it_ranks_above_every_relevant_one(retrieved, is_first):
    assert is_stale_first(retrieved, {"new", "newer"}, {"old", "older"}) == is_first


def test_the_mean_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        mean([])


@given(
    retrieved=st.lists(st.sampled_from(IDS), unique=True, min_size=1, max_size=25),
    relevant=st.sets(st.sampled_from(IDS), min_size=1, max_size=12),
    k=st.integers(1, 30),
)
def test_every_score_equals_trec_eval(retrieved, relevant, k):
    wanted = {f"recall.{k}", f"P.{k}", f"ndcg_cut.{k}", f"success.{k}", "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(relevant, 1)}, wanted)
    run = {"q": {found: float(len(retrieved) - place) for place, found in enumerate(retrieved)}}
    theirs = evaluator.evaluate(run)["q"]
    assert recall_at_k(retrieved, relevant, k) == pytest.approx(theirs[f"recall_{k}"])
    assert precision_at_k(retrieved, relevant, k) == pytest.approx(theirs[f"P_{k}"])
    assert ndcg_at_k(retrieved, relevant, k) == pytest.approx(theirs[f"ndcg_cut_{k}"])
    assert success_at_k(retrieved, relevant, k) == theirs[f"success_{k}"]
    assert reciprocal_rank(retrieved, relevant) == pytest.approx(theirs["recip_rank"])


@given(
    retrieved=st.lists(st.sampled_from(IDS), max_size=40),
    relevant=st.sets(st.sampled_from(IDS), min_size=1),
    k=st.integers(1, 40),
)
def test_scores_stay_between_zero_and_one_with_duplicates(retrieved, relevant, k):
    for score in (recall_at_k, recall_all_at_k, precision_at_k, success_at_k, ndcg_at_k):
        assert 0 <= score(retrieved, relevant, k) <= 1 + 1e-12
