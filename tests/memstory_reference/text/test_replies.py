from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.replies import json_objects


@given(st.text() | st.text('{}[]":,a1 '))
def test_no_text_breaks_the_search_for_objects(text):
    assert all(isinstance(one, dict) for one in json_objects(text))


def test_every_object_is_found_and_what_no_store_takes_is_none():
    assert list(json_objects('{"a": {"b": 1}} or {"c": NaN}, {"d": 2}')) == [{"a": {"b": 1}}, {"d": 2}]
