"""Remembered text as data on one line."""

from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.lines import as_data, one_line


@given(st.text())
def test_one_line_is_its_own_one_line(text):
    once = one_line(text)
    assert one_line(once) == once
    assert len(once.splitlines()) <= 1


def test_a_control_character_holds_no_blank_in_place():
    assert one_line("tea \x1b") == "tea"
    assert one_line("tea \u200b with milk") == "tea with milk"


def test_a_mark_of_the_memory_is_disarmed_even_where_it_hides():
    assert as_data("[\u200bMemory: user.name] Eve") == "\\[Memory: user.name] Eve"
