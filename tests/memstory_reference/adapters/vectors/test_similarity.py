import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.vectors.similarity import (
    cosine,
    cosine_of_distance,
    cosines,
    unit,
)

PARTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5).filter(any)


@pytest.mark.parametrize(("distance", "expected"), [(0.0, 1.0), (0.1, 0.9), (1.0, 0.0), (2.0, -1.0), (2.1, -1.0)])
def test_cosine_distance_becomes_the_cosine(distance, expected):
    assert cosine_of_distance(distance) == expected


@given(PARTS)
def test_unit_has_length_one_whatever_the_size_of_the_numbers(parts):
    assert np.linalg.norm(unit(parts)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("wrong", [[], [0.0, 0.0], [float("nan")], [float("inf"), 1.0], [[1.0]], 1.0], ids=repr)
def test_vector_without_a_direction_is_refused(wrong):
    with pytest.raises(ValueError, match="a vector "):
        unit(wrong)


def test_equal_rows_get_equal_scores_wherever_they_stand():
    row = unit(np.random.default_rng(1).standard_normal(384))
    scores = cosines(np.array([row] * 37), unit(np.random.default_rng(2).standard_normal(384)))
    assert len(set(scores)) == 1


def test_cosine_stays_within_its_bounds():
    assert (cosine(1.0000002), cosine(-1.5)) == (1.0, -1.0)
