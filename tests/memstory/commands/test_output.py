import io

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


def test_a_table_of_nothing_is_nothing():
    assert output.table(["a"], [], [None]) == ""
