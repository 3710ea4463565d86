import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.systems.topics.inputs import (
    MAX_CONTENT_CHARACTERS,
    MAX_METADATA_KEYS,
    RESERVED,
    check_cosine,
    check_metadata,
    check_owner,
    check_text,
    check_top_k,
    clamped_reward,
    in_utc,
)


@pytest.mark.parametrize("owner", ["", "  ", None, 3, "a\nb", "x" * 201, "\ud800", {"$ne": ""}])
def test_an_owner_that_is_none_is_refused(owner):
    with pytest.raises(InputError, match="owner"):
        check_owner(owner)


@pytest.mark.parametrize(
    "text", ["", " \n", None, 5, {"$ne": ""}, "a\0b", "half \udc00", "x" * (MAX_CONTENT_CHARACTERS + 1)]
)
def test_a_text_that_says_nothing_or_cannot_be_stored_is_refused(text):
    with pytest.raises(InputError, match="content"):
        check_text(text, "content")


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True, "5", None, 1001])
def test_top_k_is_a_whole_number_of_hits(top_k):
    with pytest.raises(InputError, match="top_k"):
        check_top_k(top_k)


@pytest.mark.parametrize("value", [1.01, -2, math.nan, math.inf, True, "0.3", None])
def test_a_threshold_is_a_cosine(value):
    with pytest.raises(InputError, match="min_score"):
        check_cosine(value, "min_score")


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (-7, -1), (0.5, 0.5), (1e308, 1)])
def test_a_reward_is_cut_to_between_minus_one_and_one(value, expected):
    assert clamped_reward(value) == expected


@pytest.mark.parametrize("value", [math.nan, -math.inf, True, "1", None])
def test_a_reward_that_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="reward"):
        clamped_reward(value)


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_metadata_that_the_memory_writes_cannot_come_from_a_caller(key):
    # LF-10
    with pytest.raises(InputError, match="reserved"):
        check_metadata({key: "x"})


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": []},
        {"a": {"$ne": 1}},
        {"$and": 1},
        {"": 1},
        {"a": math.nan},
        {"a": 2**63},
        {"a": "x\0"},
        {"a": "x" * 10_001},
        {f"k{n}": n for n in range(MAX_METADATA_KEYS + 1)},
        {"timestamp_utc": "yesterday"},
        {"timestamp_utc": "2026-05-30T09:00:00"},
        {"timestamp_utc": 5},
    ],
)
def test_metadata_is_flat_small_and_of_simple_types(metadata):
    with pytest.raises(InputError):
        check_metadata(metadata)


def test_none_in_metadata_is_left_out_and_times_are_turned_to_utc():
    checked = check_metadata({"a": None, "b": "", "c": 1, "timestamp_utc": "2026-05-30T11:00:00+02:00"})
    assert checked == {"b": "", "c": 1, "timestamp_utc": "2026-05-30T09:00:00.000000+00:00"}


@given(st.datetimes(timezones=st.timezones()), st.datetimes(timezones=st.timezones()))
def test_stored_times_sort_as_text_as_they_do_as_times(one, other):
    if one.year in (1, 9999) or other.year in (1, 9999):
        return
    assert (in_utc(one.isoformat()) < in_utc(other.isoformat())) == (one < other)
