"""That totals which are counted case by case are those that are taken of all cases at once."""

from dataclasses import replace

import pytest

from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.outcomes import capability_scores, obligations_by_column
from memstory.reporting.sections.tally import SAMPLE, SHOWN_WRONG, Tally
from memstory.results.outcomes import OUTCOMES
from memstory.results.runs import NamedRun


def tally_of(run):
    tally = Tally()
    for case in run.cases:
        tally.add(case)
    return tally


@pytest.fixture
def mixed(make_case, run_of):
    """A run on two targets with every outcome, stories of one target, obligations, scores, and one unreadable story."""
    cases = [
        make_case(
            f"S{number}", target=target, outcome=OUTCOMES[(number * 3 + len(target)) % 7], tags=tags, leaked=leaked
        )
        for number, (tags, leaked) in enumerate(
            [(("forget", "owed"), True), (("ranking",), None), (("owed",), False)] * 4
        )
        for target in (("topics", "layers") if number % 3 else ("topics",))
    ]
    unreadable = make_case("", target="", outcome="invalid", trials=(), id="bad.yaml")
    return run_of([*cases, make_case.retrieval("Q1"), make_case.retrieval("Q2", target="layers"), unreadable])


def test_the_totals_are_those_of_the_columns(mixed):
    tally, columns = tally_of(mixed), columns_of([NamedRun(name="", run=mixed)])
    assert [(one.title, one.counts) for one in tally.columns] == [(one.title, one.counts) for one in columns]
    assert [one.recall for one in tally.columns] == pytest.approx([one.recall for one in columns])
    assert tally.owed == obligations_by_column(columns)
    assert (tally.cases, tally.lost) == (len(mixed.cases), 0)


def test_the_capabilities_are_those_of_the_columns(mixed):
    columns = columns_of([NamedRun(name="", run=mixed)])
    expected = {score.name: score for score in capability_scores(columns)}
    found = {score.name: score for score in tally_of(mixed).capability_scores()}
    assert found.keys() == expected.keys()
    for name, score in found.items():
        assert (name, len(score.stories)) == (name, len(expected[name].stories))
        assert (name, score.columns) == (name, expected[name].columns)


def test_all_rows_of_a_story_count_as_one(make_case, run_of):
    cases = [make_case("S1", row=str(row), id=f"S1[{row}][topics]", tags=("ranking",)) for row in range(5)]
    scores = {score.name: score for score in tally_of(run_of(cases)).capability_scores()}
    assert (scores["ranking"].stories, scores["ranking"].columns["topics"]["passed"]) == (["S1"], 5)


def test_a_row_is_shown_on_all_targets_or_on_none(make_case, run_of):
    cases = [
        make_case(f"S{number}", target=target, outcome="failed" if (number, target) == (7, "b") else "passed")
        for number in range(2_000)
        for target in "ab"
    ]
    run = run_of([replace(case, trials=()) for case in cases])
    is_shown = tally_of(run).chooser()
    shown = {target: {case.story for case in run.cases if case.target == target and is_shown(case)} for target in "ab"}
    assert shown["a"] == shown["b"]
    assert "S7" in shown["a"]
    assert 0.7 * SAMPLE < 2 * len(shown["a"]) < 1.3 * SAMPLE


def test_of_very_many_failures_as_many_are_shown_as_the_report_says(make_case, run_of):
    run = run_of([make_case(f"S{number}", outcome="failed", trials=()) for number in range(SHOWN_WRONG + 200)])
    is_shown = tally_of(run).chooser()
    first = [case for case in run.cases if is_shown(case)][:SHOWN_WRONG]
    assert [case.story for case in first] == [f"S{number}" for number in range(SHOWN_WRONG)]
