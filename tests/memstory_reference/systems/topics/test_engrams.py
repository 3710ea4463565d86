import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.topics.engrams import FoundEngram, effective_score, rank_engrams, turn_text


def found(name, score, **metadata):
    return FoundEngram(id=name, content=name, score=score, metadata=metadata)


def order(*engrams, top_k=10, min_score=0.3):
    return [one.id for one in rank_engrams(engrams, top_k=top_k, min_score=min_score)]


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
def test_an_echo_within_five_hundredths_comes_after_a_fact(echo, fact, expected):
    assert order(found("echo", echo, is_recall=True), found("fact", fact)) == expected


def test_a_cosine_of_exactly_the_threshold_is_kept_whatever_float32_made_of_it():
    assert order(found("kept", 0.29999998), found("dropped", 0.2999)) == ["kept"]


def test_equal_scores_come_in_the_order_of_their_ids():
    assert order(found("b", 0.5), found("a", 0.5), found("c", 0.5)) == ["a", "b", "c"]


def turn(name, asked, score, answer="Noted.", **metadata):
    return FoundEngram(id=name, content=turn_text(asked, answer), score=score, metadata=metadata)


@pytest.mark.parametrize("asked", ["Where is the relay?", "Tell me where the relay is.", "Hello! Where's the relay"])
def test_questions_come_after_everything_that_was_told_however_near_they_are(asked):
    echoes = [turn(f"e{n}", asked, 0.99 - n / 100, f"On shelf {n}.", is_recall=True) for n in range(9)]
    told = turn("told", "The relay is on the shelf.", 0.31)
    assert order(*echoes, told, top_k=3) == ["told", "e0", "e1"]


def test_a_question_without_an_answer_comes_last_even_if_no_tool_was_used():
    asked = turn("asked", "Where is the relay?", 0.99, "I don't know: I have no memory of that.")
    assert order(asked, found("told", 0.4)) == ["told", "asked"]
    assert order(turn("asked", "What is 2 + 2?", 0.99, "4."), found("told", 0.4)) == ["asked", "told"]


def test_of_a_turn_that_also_told_something_the_question_does_not_count():
    both = turn("both", "I live in Graz. Where can I buy bread?", 0.9, is_recall=True)
    assert order(both, found("other", 0.5)) == ["both", "other"]


def test_recalls_take_at_most_half_of_the_places_while_there_is_something_first_hand():
    recalls = [turn(f"r{n}", f"Relay {n}, please, as you know it", 0.9, is_recall=True) for n in range(5)]
    own = [found(f"f{n}", 0.4) for n in range(2)]
    assert order(*recalls, *own, top_k=4) == ["r0", "r1", "f0", "f1"]
    assert order(*recalls, own[0], top_k=4) == ["r0", "r1", "r2", "f0"]
    assert order(*recalls, own[0], top_k=1) == ["f0"]


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
    forward = rank_engrams(some, top_k=top_k, min_score=min_score)
    assert rank_engrams(some[::-1], top_k=top_k, min_score=min_score) == forward
    assert len(forward) <= top_k
    assert all(one.score >= min_score - 1e-6 for one in forward)
