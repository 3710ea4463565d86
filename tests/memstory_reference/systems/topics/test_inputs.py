import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.systems.topics.inputs import (
    MAX_METADATA_KEYS,
    RESERVED,
    check_metadata,
    clamped_reward,
    stored_moment,
)


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (-7, -1), (0.5, 0.5), (1e308, 1)])
def test_a_reward_is_cut_to_between_minus_one_and_one(value, expected):
    assert clamped_reward(value) == expected


@pytest.mark.parametrize("value", [math.nan, -math.inf, True, "1", None, 10**400])
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
        {"timestamp_utc": "9999-12-31T23:59:59-12:00"},
        ["x"],
        "x",
        {5: "x"},
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
    assert (stored_moment(one.isoformat()) < stored_moment(other.isoformat())) == (one < other)
