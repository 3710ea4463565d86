import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.systems.manager.memories.rows import (
    MAX_CHARACTERS,
    MAX_KEYS,
    RESERVED,
    decode_metadata,
    encode_metadata,
)

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
KEYS = st.text(min_size=1).filter(lambda key: key not in RESERVED)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_whatever_json_can_hold_comes_back_as_it_was_given(metadata):
    assert decode_metadata(encode_metadata(metadata)) == metadata


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_the_store_gets_simple_values_only(metadata):
    for value in encode_metadata(metadata).values():
        assert isinstance(value, (str, bool, float)) or -(2**63) <= value < 2**63


def test_a_text_that_looks_like_an_encoding_stays_a_text():
    metadata = {"note": '@json:{"type": "fact"}'}
    assert decode_metadata(encode_metadata(metadata)) == metadata


def test_equal_nested_values_are_encoded_alike_so_that_they_can_be_filtered_on():
    assert encode_metadata({"a": {"x": 1, "y": 2}}) == encode_metadata({"a": {"y": 2, "x": 1}})


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_a_reserved_key_is_refused(key):
    with pytest.raises(InputError, match=f"'{key}' is reserved"):
        encode_metadata({key: "fact"})


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1, 2},
        (1, 2),
        {1: "a"},
        {"a": (1,)},
        pytest.param(object(), id="object"),
        b"bytes",
        [float("nan")],
    ],
    ids=repr,
)
def test_what_would_not_come_back_as_it_was_is_refused(value):
    with pytest.raises(InputError, match="'odd'"):
        encode_metadata({"odd": value})


def test_a_value_that_holds_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InputError, match="cannot be kept"):
        encode_metadata({"endless": endless})


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"huge": "x" * (MAX_CHARACTERS + 1)}, "characters; at most"),
        ({str(number): 1 for number in range(MAX_KEYS + 1)}, "keys; at most"),
        ({"": 1}, "must be text"),
        ({5: 1}, "must be text"),
        (["a"], "must be a mapping, not list"),
    ],
)
def test_metadata_that_is_too_much_or_of_the_wrong_form_is_refused(metadata, said):
    with pytest.raises(InputError, match=said):
        encode_metadata(metadata)
