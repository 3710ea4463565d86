"""CSV as a spreadsheet and a data frame read it; TREC files as other tools read them: the same scores come out."""

import csv
import doctest
import io
from dataclasses import replace

import pytest
import pytrec_eval

from memstory.commands.results import export
from memstory.commands.results.export import NOTHING, csv_files, trec_files
from memstory.reporting.writing import write_reports


def test_doctests_hold():
    assert doctest.testmod(export).failed == 0


def test_the_files_lie_beside_the_run_and_are_counted(terminal, run):
    folder = terminal.folder / "reports"
    folder.mkdir()
    write_reports(folder, run("one", run.retrieval([1, 2], target="control:random")).run)
    said = terminal.type("export", "trec", "reports")
    assert (said.code, said.out) == (0, "reports/trec: 2 files\n")
    assert {path.name for path in (folder / "trec").iterdir()} == {"Q1.qrels", "Q1.control_random.run"}
    assert terminal.type("export", "trec", "reports/results.json", "--output", "other").code == 0
    assert (terminal.folder / "other/Q1.qrels").read_text() == "q0 0 right 1\nq1 0 right 1\n"


def test_a_run_that_retrieved_nothing_and_a_folder_without_one_are_refused(terminal, run):
    folder = terminal.folder / "reports"
    folder.mkdir()
    write_reports(folder, run("one", run.case()).run)
    said = terminal.type("export", "trec", "reports")
    assert said.code == 2
    assert "holds no retrieval" in said.err
    assert terminal.type("export", "trec", "nowhere").code == 2


def test_csv_files_lie_beside_the_run_also_where_nothing_was_retrieved(terminal, run):
    folder = terminal.folder / "reports"
    folder.mkdir()
    write_reports(folder, run("one", run.case()).run)
    said = terminal.type("export", "csv", "reports")
    assert (said.code, said.out) == (0, "reports/csv: 1 file\n")
    assert (folder / "csv/cases.csv").read_text("utf-8").splitlines()[1].startswith("S1[mine],S1,,")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


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


def scored(files, story, target, *measures):
    """Return the mean of each measure by pytrec_eval, from what its own parsers make of the files."""
    qrels = pytrec_eval.parse_qrel(io.StringIO(files[f"{story}.qrels"]))
    found = pytrec_eval.parse_run(io.StringIO(files[f"{story}.{target}.run"]))
    each = pytrec_eval.RelevanceEvaluator(qrels, set(measures)).evaluate(found)
    return {name: sum(one[name] for one in each.values()) / len(each) for name in next(iter(each.values()))}


def test_another_tool_gets_our_scores_from_the_files(run):
    one = run("one", run.retrieval([1, 2, 0, 7, 10], target="mine"), run.retrieval([0, 3, 1, 1, 2], target="b")).run
    for case in one.cases:
        theirs = scored(trec_files(one), "Q1", case.target, "recall.10", "ndcg_cut.10", "recip_rank", "P.10")
        assert theirs["recall_10"] == pytest.approx(case.metrics["recall@10"], abs=1e-6)
        assert theirs["ndcg_cut_10"] == pytest.approx(case.metrics["ndcg@10"], abs=1e-6)
        assert theirs["recip_rank"] == pytest.approx(case.metrics["mrr"], abs=1e-6)
        assert theirs["P_10"] == pytest.approx(case.metrics["precision@10"], abs=1e-6)


def test_scores_fall_strictly_and_ids_are_single_words(run):
    files = trec_files(run("one", run.retrieval([2], target="control:random", k=3)).run)
    assert files["Q1.qrels"] == "q0 0 right 1\n"
    assert files["Q1.control:random.run"] == (
        "q0 Q0 d1 1 3 control:random\nq0 Q0 right 2 2 control:random\nq0 Q0 d3 3 1 control:random\n"
    )


def case_of(case, *questions):
    (trial,) = case.trials
    (record,) = trial.recording.retrieval
    first = record.questions[0]
    record = replace(record, questions=tuple(replace(first, **fields) for fields in questions), apart=("odd",))
    recording = replace(trial.recording, retrieval=(record,))
    return replace(case, trials=(replace(trial, recording=recording),))


def test_a_question_for_which_nothing_came_back_counts_as_nought_and_one_without_an_answer_not_at_all(run):
    case = case_of(
        run.retrieval([1]),
        {"id": "found"},
        {"id": "silent", "retrieved": ()},
        {"id": "absent", "relevant": ()},
        {"id": "unjudged", "judged": False},
        {"id": "apart", "category": "odd"},
        {"id": "found", "retrieved": ("x",)},
        {"id": "two words", "relevant": ("a b",), "retrieved": ("a b",)},
    )
    files = trec_files(run("one", case).run)
    assert scored(files, "Q1", "mine", "recall.10") == {"recall_10": 0.5}
    assert f"silent Q0 {NOTHING} 1 1 mine\n" in files["Q1.mine.run"]
    assert [line.split()[0] for line in files["Q1.qrels"].splitlines()] == ["found", "silent", "found~2", "two_words"]


def test_a_run_without_retrieval_has_no_files(run):
    assert trec_files(run("one", run.case()).run) == {}
