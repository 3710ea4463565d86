"""Scores of a task, each against a computation by hand."""

from dataclasses import replace

import pytest

from memstory.language.matchers.means import scores_of, warnings_of
from memstory.results.recording import QuestionRecord, RetrievalRecord


def question(id_, relevant, retrieved, **more):
    scores = tuple(1.0 / place for place in range(1, len(retrieved) + 1))
    return QuestionRecord(id=id_, relevant=tuple(relevant), retrieved=tuple(retrieved), **{"scores": scores, **more})


def record(*questions, apart=(), k=10):
    return RetrievalRecord(
        name="t", digest="d", k=k, documents=50, smallest=50, questions=tuple(questions), apart=apart
    )


def score(found, metric, category=None):
    return next((one for one in found if (one.metric, one.category) == (metric, category)), None)


SEVERAL = record(
    question("q1", "a", "a", category="single", cluster="s1", tokens=10),
    question("q2", "a", "xa", category="single", cluster="s1", tokens=30),
    question("q3", "a", "xy", category="single", cluster="s2", tokens=20),
    question("q4", "ab", "axb", category="latest", cluster="s2", stale=("x",)),
    question("q5", "a", "xa", category="latest", cluster="s3", stale=("x",)),
    question("q6", "a", "yz", category="latest", cluster="s3", stale=("x",)),
    question("q7", "", "x", category="absent"),
    question("q8", "", "", category="absent"),
)


@pytest.mark.parametrize(
    ("metric", "category", "value", "questions"),
    [
        ("recall@10", None, (1 + 1 + 0 + 1 + 1 + 0) / 6, 6),
        ("recall@10", "single", 2 / 3, 3),
        ("macro_recall@10", None, (2 / 3 + 2 / 3) / 2, 6),
        ("recall_all@10", "latest", 2 / 3, 3),
        ("stale_share", None, 1 / 3, 3),
        ("stale_share", "latest", 1 / 3, 3),
        ("context_tokens", None, 20, 3),
        ("abstention", "absent", 1 / 2, 2),
        ("mrr", None, (1 + 1 / 2 + 0 + 1 + 1 / 2 + 0) / 6, 6),
    ],
)
def test_a_score_is_the_mean_over_the_questions_that_it_counts(metric, category, value, questions):
    found = score(scores_of(SEVERAL), metric, category)
    assert (found.value, found.questions) == (pytest.approx(value), questions)


def test_recall_of_a_category_at_the_tasks_k_has_an_interval_where_questions_hang_together():
    found = scores_of(SEVERAL)
    single = score(found, "recall@10", "single")
    assert (single.low, single.high) == (0.0, 1.0)
    assert score(found, "mrr", "single").low is None
    alone = record(question("q1", "a", "a", category="x"), question("q2", "a", "z", category="x"))
    assert score(scores_of(alone), "recall@10", "x").low is None


def test_the_macro_mean_weighs_a_small_category_like_a_large_one():
    uneven = record(question("q1", "a", "a", category="x"), *(question(f"y{n}", "a", "z", category="y") for n in "123"))
    found = scores_of(uneven)
    assert score(found, "recall@10").value == 0.25
    assert score(found, "macro_recall@10").value == 0.5
    assert score(found, "macro_recall@10", "x") is None


def test_a_task_of_one_category_has_no_macro_mean_and_one_without_stale_ids_no_stale_share():
    found = scores_of(record(question("q1", "a", "a", category="x")))
    assert score(found, "macro_recall@10") is None
    assert score(found, "stale_share") is None
    assert score(found, "context_tokens") is None


def test_abstention_by_threshold_counts_questions_with_and_without_an_answer_even_those_that_stand_apart():
    high, low = {"scores": (0.9,)}, {"scores": (0.2,)}
    questions = [question(f"a{n}", "a", "a", **high) for n in "12"]
    questions += [question(f"u{n}", "", "a", category="absent", **low) for n in "12"]
    for apart in ((), ("absent",)):
        found = score(scores_of(record(*questions, apart=apart)), "abstention_accuracy")
        assert (found.value, found.questions) == (1.0, 4)


def test_a_number_beside_the_hits_decides_about_abstention_where_scores_only_rank():
    questions = [question(f"a{n}", "a", "a", scores=(0.2,), answerable=0.9) for n in "12"]
    questions += [question(f"u{n}", "", "a", scores=(0.9,), answerable=0.2) for n in "12"]
    assert score(scores_of(record(*questions)), "abstention_accuracy").value == 1.0


def test_a_memory_without_scores_cannot_be_given_a_threshold():
    questions = [question(f"q{n}", gold, "a", scores=(None,)) for n, gold in enumerate(["a", "a", "", ""])]
    assert score(scores_of(record(*questions)), "abstention_accuracy") is None


def test_totals_have_an_interval_where_questions_say_what_they_hang_on():
    found = score(scores_of(SEVERAL), "recall@10")
    assert found.low < found.value < found.high
    assert score(scores_of(record(question("q1", "a", "a"))), "recall@10").low is None


def test_the_scores_of_a_sample_have_intervals_though_no_question_has_a_cluster():
    asked = record(*(question(f"q{n}", "a", "ax" if n % 2 else "xy", category="c") for n in range(40)))
    assert score(scores_of(asked), "recall@10").low is None
    drawn = scores_of(replace(asked, drawn_from=400))
    for category in (None, "c"):
        found = score(drawn, "recall@10", category)
        assert (found.value, found.questions) == (0.5, 40)
        assert 0.25 < found.low < found.value < found.high < 0.75


def test_labels_of_which_no_hit_has_the_id_are_doubted_where_the_memory_was_preloaded():
    asked = record(question("q1", "a", "xy"), question("q2", "b", "z"), k=1)
    assert [*warnings_of(asked)] == []
    (said,) = warnings_of(replace(asked, preloaded="ann"))
    assert all(part in said for part in ("'x' came back", "'a' is named", "'ids'"))
    assert [*warnings_of(replace(asked, preloaded="ann", questions=[question("q1", "a", "xa")]))] == []
