"""CSV as a spreadsheet and a data frame read it."""

import csv
import doctest
import io
from dataclasses import replace

from memstory.reporting import csv_files as module
from memstory.reporting.csv_files import csv_files


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_doctests_hold():
    assert doctest.testmod(module).failed == 0


def test_every_case_has_a_row_and_every_score(run_of, results):
    run = run_of(results)
    files = csv_files(run)
    cases, scores = rows(files["cases.csv"]), rows(files["scores.csv"])
    assert [row["id"] for row in cases] == [case.id for case in run.cases]
    assert [row["outcome"] for row in cases] == [case.outcome for case in run.cases]
    by_id = {row["id"]: row for row in cases}
    assert by_id["S5[layers]"]["reason"] == "'layers' does not support chat"
    assert (by_id["S5[topics]"]["trials"], by_id["S5[topics]"]["trials_passed"]) == ("1", "1")
    assert len(scores) == sum(len(case.scores) for case in run.cases)
    found = {(row["metric"], row["category"]): float(row["value"]) for row in scores}
    assert (found["recall@5", ""], found["recall@5", "swapped"]) == (0.75, 0.5)


def test_a_run_without_scores_has_no_file_of_them(run_of, make_case):
    assert set(csv_files(run_of([make_case("S5")]))) == {"cases.csv"}


def test_lines_quotes_and_commas_of_a_reason_stay_in_their_cell(run_of, make_case):
    reason = 'one, "two"\nthree'
    (row,) = rows(csv_files(run_of([make_case("S6", outcome="failed", reason=reason)]))["cases.csv"])
    assert row["reason"] == reason


def test_an_answer_that_looks_like_a_formula_does_not_become_one(run_of, make_case):
    case = replace(make_case("S6", outcome="failed", reason="=HYPERLINK(1)"), title="@SUM(1)")
    (row,) = rows(csv_files(run_of([case]))["cases.csv"])
    assert (row["reason"], row["title"]) == ("'=HYPERLINK(1)", "'@SUM(1)")
