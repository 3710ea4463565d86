import pytest

from memstory.reporting.markdown import as_markdown
from memstory.reporting.sections.scores import headline_score, is_no_better_than_chance, measured_stories, score_tables
from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import run_document

FOUND = [(1, "latest"), (0, "latest"), (2, "same_name")]


@pytest.fixture
def measured(run):
    """Two targets that were only measured, beside a story that passed."""

    def make(*ranks, **fields):
        return run.retrieval(list(ranks), outcome="measured", reason=None, **fields)

    cases = [make(*FOUND, target="weak"), make((1, "latest"), (1, "latest"), (1, "same_name"), target="strong")]
    return run("one", *cases, run.case("S1")).run


def test_a_table_has_a_row_for_each_category_and_the_best_target_first(measured):
    (story,) = measured_stories(measured)
    assert story.table.header == ["questions", "strong", "weak"]
    rows = {row[0]: row[1:] for row in story.table.rows}
    assert rows["latest (2)"] == ["1.00", "0.50"]
    assert rows["same name (1)"] == ["1.00", "1.00"]
    assert rows["ALL, each category alike"] == ["1.00", "0.75"]
    assert "chance is 0.200" in story.notes[0]


def test_rows_of_what_nobody_measured_are_left_out(measured):
    (story,) = measured_stories(measured)
    assert not [row for row in story.table.rows if row[0].startswith(("old value", "knows", "tokens"))]


def test_the_table_is_in_the_terminal_and_on_the_page_and_its_scores_nowhere_else(measured):
    (story,) = measured_stories(measured)
    summary = terminal_summary(measured, verbose=True)
    assert summary.count(story.title) == summary.count("same name (1)") == 1
    assert "1 passed, 0 failed, 2 measured" in summary
    page = as_markdown(run_document(measured))
    assert "## Measured" in page
    assert as_markdown(score_tables(measured)).strip() in page
    assert "Every case that ran passed** (1 of 3). 2 measured: they only take scores and cannot fail." in page


def test_without_verbose_the_terminal_has_one_table_of_categories_that_explains_itself(measured):
    summary = terminal_summary(measured)
    lines = summary.splitlines()
    assert "same name (1)" in summary
    assert [line.split()[-2:] for line in lines if line.startswith(("questions  ", "latest (2)", "ALL"))] == [
        ["strong", "weak"], ["1.00", "0.50"], ["1.00", "0.75"],
    ]  # fmt: skip
    assert "1 is best" in summary.replace("\n", " ")
    assert summary.rindex("strong") > summary.index("ALL"), "the end is a line for each target"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_table_of_categories_keeps_to_the_width_and_says_what_it_leaves_out(run, width):
    ranks = [(1, "latest"), (1, "same_name")]
    names = [f"a_memory_with_a_long_name_{number}" for number in range(12)]
    cases = [run.retrieval(ranks, outcome="measured", reason=None, target=name) for name in names]
    shown = terminal_summary(run("one", *cases).run, width=width).split("\n\n")[0]
    assert max(map(len, shown.splitlines())) <= width
    columns = next(line for line in shown.splitlines() if line.startswith("latest")).count("1.00")
    assert columns == 12 or f"{12 - columns} more target" in shown


def test_columns_whose_names_begin_alike_are_told_apart_by_their_ends(run):
    ranks = [(1, "latest"), (1, "same_name")]
    names = [f"control:{name}" for name in ("everything", "oracle", "random", "nothing", "grep")]
    cases = [run.retrieval(ranks, outcome="measured", reason=None, target=name) for name in names]
    header = next(line for line in terminal_summary(run("one", *cases).run, width=70).splitlines() if "…" in line)
    assert [name[-4:] in header for name in names] == [True] * 5


def test_nothing_measured_by_category_needs_no_table(run):
    assert "questions" not in terminal_summary(run("one", run.case("S1")).run)


def test_a_target_that_finds_no_more_than_chance_is_marked(run):
    # k is 10 of 50 documents: chance finds one of five.
    poor = run.retrieval([1, 0, 0, 0, 0], outcome="measured", target="poor")
    good = run.retrieval([1, 1, 0, 0, 0], outcome="measured", target="good")
    one = run("one", poor, good).run
    assert {case.target: is_no_better_than_chance(case) for case in one.cases} == {"poor": True, "good": False}
    (story,) = measured_stories(one)
    assert story.table.header == ["questions", "good", "poor*"]
    assert story.notes[-1] == "* no better than chance: poor"


def test_a_case_is_headed_by_its_first_score(measured, run):
    assert headline_score(measured.cases[0]) == "macro_recall@10 1.000"
    assert headline_score(run.case("S1", "measured", trials=0)) == "it measured"


def test_a_run_that_only_judged_has_no_table(run):
    only = run("one", run.retrieval([1]), run.case("S1")).run
    assert not score_tables(only)
    assert "Measured" not in as_markdown(run_document(only))


def test_steps_that_are_measured_tell_how_many_expectations_held(make_case, run_of):
    held = make_case("T1", target="a", outcome="measured", title="A rent is told as it is now")
    other = make_case("T2", target="b", outcome="measured", title="A name is known")
    (story,) = measured_stories(run_of([held, other]))
    passed = [one.passed for one in held.trials[0].verdicts]
    assert story.table.header == ["story", "a", "b"]
    assert story.table.rows[0] == ["A rent is told as it is now", f"{sum(passed)}/{len(passed)}", "-"]
    assert story.table.rows[-1][0] == "ALL"
