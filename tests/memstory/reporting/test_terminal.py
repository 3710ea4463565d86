import pytest

from memstory.reporting import terminal
from memstory.reporting.sections.columns import headline


@pytest.fixture
def terminal_summary(run_of):
    """The tables of -v."""
    return lambda results: terminal.terminal_summary(run_of(results), verbose=True)


@pytest.fixture
def short(run_of):
    """What a run ends with."""

    def summary(results, **more):
        return terminal.terminal_summary(run_of(results), **more)

    return summary


def test_a_green_run_ends_in_a_line_for_each_target(make_case, short):
    lines = short([make_case(), make_case(target="layers"), make_case.retrieval()]).split("\n")
    assert lines[-3:] == [
        "layers  1 passed",
        "topics  2 passed  R@5 0.75",
        "memstory: 3 passed, 0 failed",
    ]


def test_what_changed_since_the_last_run_is_said_and_what_got_worse_is_named(make_case, short, run_of):
    last = run_of([make_case("S1"), make_case("S2", outcome="failed"), make_case("S3")])
    text = short([make_case("S1", outcome="failed"), make_case("S2"), make_case("S3")], last=last)
    assert "+1 -1 since the last run" in text
    assert "passed in the last run, now failed: S1[topics]" in text
    assert "same since the last run" in short([make_case("S3")], last=last)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_lines_of_targets_keep_to_the_width(make_case, short, width):
    cases = [make_case(f"S{n}", target="a very long name of a target " * 3, outcome=o)
             for n, o in enumerate(["passed", "failed", "error", "unsupported"])]  # fmt: skip
    assert max(map(len, short(cases, width=width).split("\n"))) <= max(width, 70)


def test_why_cases_ended_as_errors_is_said_once_for_all_that_say_the_same(make_case, short):
    cases = [make_case(f"S{n}", outcome="error", reason=f"a.yaml:{n}:1: no such command 'uvx'") for n in (1, 2, 3)]
    assert short(cases).split("\n")[-2:] == [
        "topics: 3 error: no such command 'uvx'",
        "memstory: 0 passed, 0 failed, 3 error",
    ]


def test_what_to_do_about_an_error_is_not_cut_off(make_case, short):
    reason = "the target 'mine' needs the package 'somewhere', which is not installed. Install it with: pip install x"
    said = short([make_case("S1", outcome="error", reason=f"a.yaml:1:1: {reason}")])
    assert reason in " ".join(said.split())


def test_errors_and_losses_beyond_those_that_are_named_are_counted(make_case, short, run_of):
    names = [f"S{number}" for number in range(1, 15)]
    cases = [make_case(name, outcome="error", reason=f"a.yaml:1:1: broke by {name}") for name in names]
    said = short(cases, last=run_of([make_case(name) for name in names]))
    assert (said.count("1 error: broke by"), "and 9 more errors for 9 other reasons, all in the report" in said) == (
        5,
        True,
    )
    assert (said.count("passed in the last run"), "and 4 more that passed in the last run" in said) == (10 + 1, True)


def test_the_tables_come_with_verbose_only(results, short, terminal_summary):
    assert "Title of S5" not in short(results)
    assert "Title of S5" in terminal_summary(results)


def test_the_summary_ends_with_the_counts(results, terminal_summary):
    last = terminal_summary(results).split("\n")[-1]
    assert last == "memstory: 2 passed, 1 failed, 1 unsupported, 1 error, 1 invalid"


def test_matrix_scores_reasons_and_the_stand_in_are_shown(results, terminal_summary):
    lines = [" ".join(line.split()) for line in terminal_summary(results).split("\n")]
    assert "story title layers topics" in lines
    assert "S5 Title of S5 unsupported passed" in lines
    assert "Q1 topics total 1 0.750 0.750 0.750 0.750" in lines
    assert "Q1 topics swapped (apart) 1 0.500 0.500 0.500 0.500" in lines
    assert "1 unsupported: 'layers' does not support chat" in lines
    assert any(line.startswith("No language model was used: ") for line in lines)


def test_of_very_many_stories_only_those_that_need_a_look_are_listed(make_case, terminal_summary):
    cases = [make_case(f"S{number}") for number in range(50)] + [make_case("S99", outcome="failed")]
    text = terminal_summary(cases)
    assert "S99" in text
    assert "S7 " not in text


def test_of_very_many_targets_the_outcomes_are_counted_and_no_line_grows_with_them(make_case, terminal_summary):
    cases = [make_case("S1", target=f"target {number}") for number in range(100)]
    cases += [make_case("S1", target="bad", outcome="failed"), make_case("S2", target="bad", outcome="error")]
    text = terminal_summary(cases)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    assert lines[0] == "story title passed failed error"
    assert "S1 Title of S1 100 1 -" in lines
    assert "S2 Title of S2 - - 1" in lines
    assert "101 targets are too many for a column each; report.md has them all." in lines
    assert max(map(len, text.split("\n"))) < 120


def test_twelve_targets_have_a_column_each(make_case, terminal_summary):
    text = terminal_summary([make_case("S1", target=f"t{number}") for number in range(12)])
    assert text.split("\n")[0].split() == ["story", "title", *sorted(f"t{number}" for number in range(12))]


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b[31m", "one\ntwo", "\u202egnp", "x" * 10_000])
def test_no_text_reaches_the_terminal_as_a_command_or_breaks_a_line(make_case, hostile, terminal_summary):
    text = terminal_summary([make_case(title=hostile, outcome="unsupported", reason=hostile)])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text.split("\n")) == len(terminal_summary([make_case(outcome="unsupported")]).split("\n"))
    assert max(map(len, text.split("\n"))) < 300


def test_many_reasons_are_counted_and_only_the_most_frequent_listed(make_case, terminal_summary):
    cases = [make_case(f"S{n}", outcome="unsupported", reason=f"reason {n}") for n in range(20)]
    cases += [make_case(f"T{n}", outcome="unsupported", reason="the usual") for n in range(3)]
    lines = terminal_summary(cases).split("\n")
    assert "3 unsupported: the usual" in lines
    assert "13 unsupported for 13 other reasons, all in report.md" in lines


def test_no_result_at_all_is_said_as_such(terminal_summary):
    assert terminal_summary([]) == "memstory: 0 passed, 0 failed"


def test_a_target_that_the_last_run_did_not_have_is_new_and_not_the_same(make_case, short, run_of):
    last = run_of([make_case("S1", target="topics")])
    lines = short([make_case("S1", target="topics"), make_case("S1", target="layers")], last=last).split("\n")
    assert [" ".join(line.split()) for line in lines[-3:-1]] == [
        "layers 1 passed new since the last run",
        "topics 1 passed same since the last run",
    ]
    assert "same, 1 new since the last run" in short([make_case("S1"), make_case("S2")], last=last)


def test_the_headline_says_how_often_each_case_ran(make_case, run_of):
    several, once = make_case("S1", trials=[make_case.trial()] * 3), make_case("S2")
    assert headline(run_of([several])) == "1 passed, 0 failed, 3 trials a case"
    assert headline(run_of([several, once])) == "2 passed, 0 failed, up to 3 trials a case"
    assert headline(run_of([once])) == "1 passed, 0 failed"
