import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.topics.engrams import FoundEngram, effective_score, ranked


def found(name, score, **metadata):
    return FoundEngram(id=name, content=name, score=score, metadata=metadata)


def order(*engrams, top_k=10, min_score=0.3):
    return [one.id for one in ranked(engrams, top_k=top_k, min_score=min_score)]


def test_a_rewarded_engram_overtakes_a_nearer_one_by_a_tenth_of_its_reward():
    engrams = [found("a", 0.82), found("b", 0.78, reward=1.0), found("c", 0.45, reward=1.0)]
    assert [round(effective_score(one), 6) for one in engrams] == [0.82, 0.88, 0.55]
    assert order(*engrams) == ["b", "a", "c"]


def test_of_two_equally_near_the_praised_one_comes_first():
    assert order(found("blamed", 0.5, reward=-1.0), found("praised", 0.5, reward=1.0)) == ["praised", "blamed"]


def test_reward_lifts_nothing_over_the_threshold():
    assert order(found("far", 0.29, reward=1.0), found("near", 0.3)) == ["near"]


def test_reward_beyond_one_counts_as_one():
    assert effective_score(found("a", 0.5, reward=50.0)) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("echo", "fact", "expected"),
    [
        (0.83, 0.80, ["fact", "echo"]),
        (0.85, 0.80, ["fact", "echo"]),
        (0.86, 0.80, ["echo", "fact"]),
        (0.70, 0.80, ["fact", "echo"]),
    ],
)
def test_an_echo_within_five_hundredths_stands_behind_a_fact(echo, fact, expected):
    assert order(found("echo", echo, is_recall=True), found("fact", fact)) == expected


def test_a_cosine_of_exactly_the_threshold_is_kept_whatever_float32_made_of_it():
    assert order(found("kept", 0.29999998), found("dropped", 0.2999)) == ["kept"]


def test_equal_scores_come_in_the_order_of_their_ids():
    assert order(found("b", 0.5), found("a", 0.5), found("c", 0.5)) == ["a", "b", "c"]


scores = st.floats(min_value=-1, max_value=1, allow_nan=False)
engrams = st.lists(
    st.builds(
        lambda number, score, reward, echo: found(f"{number}", score, reward=reward, is_recall=echo),
        st.integers(),
        scores,
        scores,
        st.booleans(),
    ),
    unique_by=lambda one: one.id,
    max_size=8,
)


@given(engrams, scores, st.integers(min_value=1, max_value=10))
def test_the_order_depends_on_nothing_but_the_engrams(some, min_score, top_k):
    forward = ranked(some, top_k=top_k, min_score=min_score)
    assert ranked(some[::-1], top_k=top_k, min_score=min_score) == forward
    assert len(forward) <= top_k
    assert all(one.score >= min_score - 1e-6 for one in forward)
