import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.pipeline.ingest import centroid, importance, novelty, salience
from memstory_reference.systems.pipeline.reading import Signals

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
