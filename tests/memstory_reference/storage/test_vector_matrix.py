import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.storage.vector_matrix import (
    DIGITS,
    VectorMatrix,
    cosines,
    normalized_or_none,
)

VECTORS = st.tuples(*[st.integers(-2, 2)] * 3).filter(any)
IDS = st.sampled_from("abcdefgh")
MOMENTS = st.integers(0, 3)
STEPS = st.lists(st.one_of(st.tuples(IDS, VECTORS, MOMENTS), IDS), max_size=40)


def unit(vector):
    return normalized_or_none(np.array(vector, np.float32))


def filled(steps):
    """Return the matrix after puts and discards, beside a plain dict of what should be there."""
    matrix, plain = VectorMatrix(), {}
    for step in steps:
        if isinstance(step, str):
            matrix.discard(step)
            plain.pop(step, None)
        else:
            identifier, vector, moment = step
            matrix.put(identifier, unit(vector), moment)
            plain[identifier] = (unit(vector), moment)
    return matrix, plain


@given(
    steps=STEPS,
    asked=VECTORS,
    k=st.integers(0, 9),
    among=st.none() | st.sets(IDS),
    since=st.none() | MOMENTS,
)
def test_nearest_is_what_a_full_sort_gives(steps, asked, k, among, since):
    matrix, plain = filled(steps)
    among = None if among is None else sorted(among & plain.keys(), reverse=True)
    question = unit(asked).astype(float)
    ranked = sorted(
        (-round(float(np.clip(vector.astype(float) @ question, -1, 1)), DIGITS), -moment, identifier)
        for identifier, (vector, moment) in plain.items()
        if (among is None or identifier in among) and (since is None or moment >= since)
    )
    places = None if among is None else matrix.places(among)
    found = matrix.nearest(unit(asked), k, among=places, since=since)
    assert found == [(identifier, -score) for score, _, identifier in ranked[:k]]
    assert len(matrix) == len(plain)


def test_vector_without_a_direction_is_not_usable():
    assert normalized_or_none(None) is None
    assert normalized_or_none(np.zeros(3)) is None
    assert normalized_or_none(np.array([np.nan, 1.0])) is None
    assert normalized_or_none(np.array([np.inf, 1.0])) is None
    assert normalized_or_none(np.array([3.0, 4.0])).tolist() == [np.float32(0.6), np.float32(0.8)]


def test_equal_rows_get_equal_scores_wherever_they_are():
    row = unit(np.random.default_rng(1).standard_normal(384))
    scores = cosines(np.array([row] * 37), unit(np.random.default_rng(2).standard_normal(384)))
    assert len(set(scores)) == 1
