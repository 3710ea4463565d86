from __future__ import annotations

import json
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from memstory_reference.commands.terminal import cell, json_text, printable

NASTY = st.text(st.one_of(st.characters(), st.sampled_from("\x1b\x9b\r\n\t\u202e\u2028\x07")))


@settings(deadline=None)
@given(NASTY)
def test_what_is_printed_has_no_control_character_but_lines_and_tabs(text):
    shown = printable(text)
    assert [sign for sign in shown if unicodedata.category(sign) == "Cc" and sign not in "\n\t"] == []
    assert "\u202e" not in shown


@settings(deadline=None)
@given(NASTY, st.integers(1, 40))
def test_a_cell_is_one_line_of_bounded_length(text, limit):
    shown = cell(text, limit)
    assert len(shown) <= limit
    assert shown.splitlines() in ([], [shown])


@settings(max_examples=50, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | NASTY, st.lists))
def test_json_reads_back_and_steers_nothing(value):
    written = json_text(value)
    assert json.loads(written) == value
    assert all(sign.isprintable() for sign in written)


def test_scripts_stay_readable():
    assert json_text({"name": "Łukasz 中村"}) == '{"name": "Łukasz 中村"}'
    assert printable("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"
