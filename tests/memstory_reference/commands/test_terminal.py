from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstory_reference.commands.terminal import Terminal, cell, json_text, printable


def test_bytes_that_are_no_text_end_no_conversation():
    stdin = io.TextIOWrapper(io.BytesIO(b"caf\xe9\r\nnext"), encoding="utf-8")
    shown = io.BytesIO()
    terminal = Terminal(stdin, io.TextIOWrapper(shown, encoding="ascii"))
    assert [terminal.ask("> "), terminal.ask("> "), terminal.ask("> ")] == ["caf\ufffd", "next", None]
    terminal.aside("café")
    assert shown.getvalue() == b"caf\\xe9\n"


def test_an_empty_line_is_not_the_end():
    terminal = Terminal(io.StringIO("\nlast\n"), io.StringIO())
    assert [terminal.ask(""), terminal.ask(""), terminal.ask("")] == ["", "last", None]


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        (lambda terminal: (terminal.part("one "), terminal.part("two"), terminal.answer("one two")), "one two\n"),
        (lambda terminal: (terminal.part("Let me look."), terminal.aside("→ look"), terminal.answer("It is two.")),
         "Let me look.\n→ look\nIt is two.\n"),
        (lambda terminal: (terminal.part("half an ans"), terminal.aside("! it broke")), "half an ans\n! it broke\n"),
        (lambda terminal: (terminal.part("one\n"), terminal.answer("one\n")), "one\n"),
        (lambda terminal: (terminal.part(" "), terminal.answer("I have no answer to that.")),
         " \nI have no answer to that.\n"),
    ],
)  # fmt: skip
def test_an_answer_is_printed_once_and_what_interrupts_it_on_a_line_of_its_own(said, printed):
    out = io.StringIO()
    said(Terminal(io.StringIO(), out))
    assert out.getvalue() == printed


SCRIPT = """
import sys
from memstory_reference.commands.terminal import Terminal
terminal = Terminal(sys.stdin, sys.stdout)
while (line := terminal.ask("you> ")) is not None:
    terminal.aside(f"<{line}>")
print("ended")
"""


def test_at_a_real_terminal_earlier_lines_come_back_with_the_arrow_and_ctrl_d_ends():
    pytest.importorskip("readline")
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=theirs, stdout=theirs, stderr=theirs)  # noqa: S603
    os.close(theirs)
    shown = b""

    def read_until(mark: bytes) -> None:
        nonlocal shown
        while mark not in shown:
            assert select.select([ours], [], [], 60)[0], f"no {mark!r} in {shown!r}"
            shown += os.read(ours, 4096)
        shown = shown.partition(mark)[2]

    for keys, mark in ((b"first\n", b"<first>"), (b"second\n", b"<second>"), (b"\x1b[A\x1b[A\n", b"<first>")):
        read_until(b"you> ")
        os.write(ours, keys)
        read_until(mark)
    # Only at the prompt is the terminal in readline's hands.
    read_until(b"you> ")
    os.write(ours, b"\x04")
    read_until(b"ended")
    assert child.wait(timeout=20) == 0
    os.close(ours)


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
