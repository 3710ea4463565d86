"""TREC files as other tools read them: the same scores come out."""

import doctest
import io
from dataclasses import replace

import pytest
import pytrec_eval

from memstory.reporting import trec
from memstory.reporting.trec import NOTHING, trec_files


def scored(files, story, target, *measures):
    """Return the mean of each measure by pytrec_eval, from what its own parsers make of the files."""
    qrels = pytrec_eval.parse_qrel(io.StringIO(files[f"{story}.qrels"]))
    found = pytrec_eval.parse_run(io.StringIO(files[f"{story}.{target}.run"]))
    each = pytrec_eval.RelevanceEvaluator(qrels, set(measures)).evaluate(found)
    return {name: sum(one[name] for one in each.values()) / len(each) for name in next(iter(each.values()))}


def test_doctests_hold():
    assert doctest.testmod(trec).failed == 0


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


def asked(case, *questions):
    (trial,) = case.trials
    (record,) = trial.recording.retrieval
    first = record.questions[0]
    record = replace(record, questions=tuple(replace(first, **fields) for fields in questions), apart=("odd",))
    recording = replace(trial.recording, retrieval=(record,))
    return replace(case, trials=(replace(trial, recording=recording),))


def test_a_question_for_which_nothing_came_back_counts_as_nought_and_one_without_an_answer_not_at_all(run):
    case = asked(
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
