import io
import json

import pytest

from memstory.commands import output


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_person_at_a_terminal_sees_how_far_a_long_work_is(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(output.sys, "stderr", screen)
    monkeypatch.setattr(output, "FIRST_SIGN_SECONDS", 0.0)
    assert list(output.with_progress(["a", "b"], "file")) == ["a", "b"]
    assert screen.getvalue().startswith("\r  1/2 files")
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_program_that_reads_sees_no_progress(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(output.sys, "stderr", screen)
    monkeypatch.setattr(output, "FIRST_SIGN_SECONDS", 0.0)
    assert list(output.with_progress(["a", "b"], "file")) == ["a", "b"]
    assert screen.getvalue() == ""


def test_json_for_programs_has_no_number_that_json_lacks(capsys):
    output.say_json({"scores": [float("nan"), float("-inf"), 0.123456789, 1]})
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert said == {"scores": ["nan", "-inf", 0.123456789, 1]}


def test_a_table_of_nothing_is_nothing():
    assert output.table(["a"], [], [None]) == ""


def test_a_table_is_narrowed_to_the_screen_from_its_widest_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    rows = [["kept-as-it-is", "a word " * 10, "more words " * 20]]
    lines = output.table(["one", "two", "three"], rows, [None, 40, 90]).split("\n")
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).count("word ") + " ".join(lines).count("word\n") >= 10
    monkeypatch.setenv("COLUMNS", "10")
    assert output.table(["one", "two"], [["kept-as-it-is", "b " * 30]], [None, 40]).split("\n")[0].startswith("one")
