from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ranking import (
    adjustment,
    best_of_each_task,
    quality,
    rank,
    rank_candidates,
    similarity,
)
from memstory_reference.text.words import extract_keywords

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def observation(identifier, score=None, **fields):
    return Observation(
        id=identifier,
        title=fields.get("title", identifier),
        narrative=fields.get("narrative", identifier),
        facts=(),
        task=fields.get("task", f"task of {identifier}"),
        final_score=score,
        timestamp=fields.get("timestamp", NOON),
    )


def rank_all(observations, similarities, named=(), keywords=()):
    by_id = {one.id: similarity for one, similarity in zip(observations, similarities, strict=True)}
    return rank_candidates(observations, by_id, named, keywords, min_sim=0.3)


def order(*given):
    return [entry.observation.id for entry in rank_all(*given)]


def test_ties_go_to_the_newer_then_the_lower_id():
    newer = NOON + timedelta(seconds=1)
    assert order([observation("b"), observation("a"), observation("c", timestamp=newer)], [0.5] * 3) == ["c", "a", "b"]


def test_one_common_keyword_does_not_admit_what_is_far():
    note, keywords = observation("x", narrative="a note on cost"), extract_keywords("cost control")
    assert order([note], [0.1], ["x"], keywords) == []
    assert order([note], [0.3], ["x"], keywords) == ["x"]


def test_two_keywords_or_one_specific_admit_what_is_far():
    two, name = observation("x", narrative="cost and control"), observation("y", narrative="ran glm4:9b")
    assert order([two], [0.0], ["x"], extract_keywords("cost control")) == ["x"]
    assert order([name], [0.0], ["y"], extract_keywords("tune glm4:9b")) == ["y"]
    assert order([name], [0.0], [], extract_keywords("tune glm4:9b")) == []


def test_runs_of_one_task_take_one_place():
    runs = [observation("weak", 6.0, task="Explain  caching"), observation("best", 9.0, task="explain caching")]
    assert [entry.observation.id for entry in best_of_each_task(rank_all(runs, [0.9, 0.9]))] == ["best"]


@given(st.permutations(range(6)))
def test_the_order_does_not_depend_on_who_came_first(places):
    runs = [(observation(str(place), float(place)), 0.5 + place % 2 / 4) for place in range(6)]
    assert order(*zip(*[runs[place] for place in places], strict=True)) == order(*zip(*runs, strict=True))


@pytest.mark.parametrize(
    ("sim", "score", "rating", "expected"),
    [
        (0.9, 9.1, None, 0.903),
        (0.9, 5.8, None, 0.717),
        (0.8, 8.7, None, 0.821),
        (0.8, 8.7, 1, 0.94415),
        (0.8, 8.7, 2, 1.0673),
        (0.8, 8.7, -1, 0.69785),
        (0.8, 8.7, -5, 0.20525),
        (0.8, 8.7, -6, 0.1642),
        (0.8, 7.0, None, 0.77),
        (0.8, 6.99, None, 0.66485),
        (0.8, 6.0, None, 0.65),
        (0.8, None, None, 0.71),
        (0.8, 0.0, None, 0.56),
        (1, 10, None, 1.0),
        (1, 10, 2, 1.3),
        (0, 9.1, None, 0.273),
        (0.75, 9.1, None, 0.798),
        (0.85, 5.8, None, 0.682),
    ],
)
def test_rank_is_the_worked_number(sim, score, rating, expected):
    assert rank(sim, score, rating).rank == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(9.1, 0.91), (8.7, 0.87), (7.0, 0.70), (6.99, 0.3495), (6.0, 0.30), (5.8, 0.29), (0.0, 0.0), (None, 0.5)],
)
def test_quality_is_halved_below_seven(score, expected):
    assert quality(score) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rating", "expected"),
    [
        (None, 1.0),
        (0, 1.0),
        (1, 1.15),
        (2, 1.30),
        (-1, 0.85),
        (-2, 0.70),
        (-5, 0.25),
        (-16 / 3, 0.20),
        (-6, 0.20),
        (-10, 0.20),
    ],
)
def test_adjustment_never_falls_below_a_fifth(rating, expected):
    assert adjustment(rating) == pytest.approx(expected, abs=1e-9)


@given(st.floats(-1, 1), st.floats(0, 10), st.floats(-10, 0))
def test_a_bad_rating_never_improves_a_rank(sim, score, rating):
    assert rank(sim, score, rating).rank <= rank(sim, score).rank + 1e-12


@pytest.mark.parametrize(
    ("distance", "expected"), [(0, 1.0), (0.2, 0.9), (0.5, 0.75), (1, 0.5), (2, 0.0), (3, -0.5), (4, -1.0)]
)
def test_similarity_is_one_less_half_the_squared_distance(distance, expected):
    # O-07
    assert similarity(distance) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("degrees", [0, 53.13, 90, 143.13, 180])
def test_similarity_of_a_squared_distance_of_unit_vectors_is_their_cosine(degrees):
    # O-07, OF-2
    one, other = np.array([1.0, 0.0]), np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    assert similarity(float(np.sum((one - other) ** 2))) == pytest.approx(float(one @ other), abs=1e-9)
