import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.bus.deliveries import MAX_PAYLOAD_CHARACTERS, pack, unpack
from memstory_reference.errors import InputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON))
def test_a_json_object_comes_out_as_it_went_in(payload):
    assert unpack(pack(payload)) == payload


@pytest.mark.parametrize("payload", [None, [], "text", {"a": math.nan}, {"a": object()}, {"a": {1, 2}}, {"a": b"x"}])
def test_what_is_no_json_object_is_refused(payload):
    with pytest.raises(InputError, match="bus:"):
        pack(payload)


def test_a_payload_that_is_too_deep_or_holds_itself_is_refused():
    circle = {}
    circle["self"] = circle
    deep = {}
    for _ in range(100_000):
        deep = {"d": deep}
    for payload in (circle, deep):
        with pytest.raises(InputError, match="not JSON"):
            pack(payload)


def test_a_payload_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="at most"):
        pack({"a": "x" * MAX_PAYLOAD_CHARACTERS})
