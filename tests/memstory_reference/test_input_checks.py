import math
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    MAX_OWNER_CHARACTERS,
    Limits,
    checked_count,
    checked_mapping,
    checked_memory,
    checked_moment,
    checked_number,
    checked_owner,
    checked_query,
    checked_text,
    checked_texts,
    limits_of,
)

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.builds(lambda: 10**5_000),
    st.floats(),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
    st.lists(st.text(st.characters(exclude_categories=())), max_size=3),
    st.dictionaries(st.one_of(st.text(), st.integers()), st.integers(), max_size=2),
    st.datetimes(timezones=st.timezones()),
)
CHECKS = [
    checked_owner,
    lambda value: checked_text(value, "x", 5, "max_x"),
    lambda value: checked_memory(value, Limits()),
    lambda value: checked_query(value, Limits(), may_be_blank=True),
    lambda value: checked_texts(value, "x", 2, 5),
    lambda value: checked_mapping(value, "x"),
    lambda value: checked_count(value, "x"),
    lambda value: checked_number(value, "x", -1, 1),
    lambda value: checked_moment(value, "x"),
]


@given(ANYTHING, st.sampled_from(CHECKS))
def test_whatever_is_given_is_taken_or_refused_with_one_short_message(value, check):
    said = ""
    try:
        check(value)
    except InputError as error:
        said = str(error)
    assert len(said.encode()) < 800  # a message with half a character could not be printed


@pytest.mark.parametrize(
    "owner",
    ["", "  ", None, 3, "a\nb", "a\0b", "a\u2028b", "x" * (MAX_OWNER_CHARACTERS + 1), "\ud800", {"$ne": ""}, ["a"]],
)
def test_a_name_that_is_not_one_is_refused(owner):
    with pytest.raises(InputError, match="owner"):
        checked_owner(owner)


@pytest.mark.parametrize("owner", ["a", "ann@example.org", "x" * MAX_OWNER_CHARACTERS, "日本 🦀", "../a b"])
def test_a_name_is_returned_as_it_was_given(owner):
    assert checked_owner(owner) == owner


@pytest.mark.parametrize("text", ["", " \n", None, 5, {"$ne": ""}, "a\0b", "half \udc00", "x" * 11])
def test_a_text_that_says_nothing_or_cannot_be_stored_is_refused(text):
    with pytest.raises(InputError, match="content"):
        checked_memory(text, Limits(max_memory_characters=10))


def test_a_text_that_is_too_long_names_the_setting_that_decides():
    with pytest.raises(InputError, match=r"query has 6 characters; at most 5 \(max_query_characters\)"):
        checked_query("abcdef", Limits(max_query_characters=5))
    assert checked_query("", Limits(), may_be_blank=True) == ""


@pytest.mark.parametrize("value", [-1, 1.5, True, "5", None, 1001, 10**19, 10**4_000])
def test_a_count_is_a_whole_number_within_bounds(value):
    with pytest.raises(InputError, match="top_k"):
        checked_count(value, "top_k")


@pytest.mark.parametrize("value", [1.01, -2, math.nan, math.inf, True, "0.3", None, 10**4_000])
def test_a_number_is_finite_and_within_bounds(value):
    with pytest.raises(InputError, match="min_score"):
        checked_number(value, "min_score", -1, 1)


@pytest.mark.parametrize(
    "value",
    ["yesterday", "2026-05-30", datetime(2026, 5, 30), 5, "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"],  # noqa: DTZ001  (without a zone, to be refused)
)
def test_a_moment_has_an_offset_and_a_year_that_can_be_told_in_utc(value):
    with pytest.raises(InputError, match="timestamp"):
        checked_moment(value, "timestamp")


def test_a_moment_is_returned_in_utc():
    assert checked_moment("2026-05-30T11:00:00+02:00", "t") == datetime(2026, 5, 30, 9, tzinfo=UTC)


def test_one_text_is_not_taken_for_the_list_of_its_characters():
    with pytest.raises(InputError, match="facts must be a list of texts, not str"):
        checked_texts("abc", "facts", 10, 10)
    with pytest.raises(InputError, match=r"facts\[1\] has 3 characters; at most 2"):
        checked_texts(["ab", "abc"], "facts", 10, 2)


def test_limits_are_taken_from_settings_and_each_has_a_rule_that_its_default_fits():
    assert limits_of(SimpleNamespace(max_tool_calls=3, other=1)) == Limits(max_tool_calls=3)
    defaults = Limits()
    rules = {name: hint.__metadata__[0] for name, hint in get_type_hints(Limits, include_extras=True).items()}
    assert all(rule.fits(getattr(defaults, name)) for name, rule in rules.items())
    assert set(rules) == set(Limits.__slots__)
