import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.vectors.vector_rows import normalize

PARTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5).filter(any)


@given(PARTS)
def test_unit_has_length_one_whatever_the_size_of_the_numbers(parts):
    assert np.linalg.norm(normalize(parts)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("wrong", [[], [0.0, 0.0], [float("nan")], [float("inf"), 1.0], [[1.0]], 1.0], ids=repr)
def test_vector_without_a_direction_is_refused(wrong):
    with pytest.raises(ValueError, match="a vector "):
        normalize(wrong)
