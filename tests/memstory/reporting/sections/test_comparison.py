import json
from dataclasses import replace

import pytest

from memstory.contract.codec import encode
from memstory.contract.errors import SetupError
from memstory.reporting.markdown import as_markdown
from memstory.reporting.sections.columns import columns_of, named_column
from memstory.reporting.sections.comparison import compare, comparison_document, comparison_tables
from memstory.reporting.sections.costs import Spread, percentile
from memstory.reporting.sections.differences import differences_in_words, metrics_of
from memstory.reporting.terminal import as_text
from memstory.results.folder.results_file import without_steps
from memstory.results.outcomes import Score
from memstory.results.runs import NamedRun, Part


def test_targets_of_one_run_are_columns_named_by_themselves(run):
    one = run("one", run.case(target="b"), run.case(target="a"))
    assert [made.column for made in compare([one]).columns] == ["a", "b"]


def test_a_target_of_two_runs_is_named_by_its_run_and_held_against_itself(run):
    runs = [run("old", run.case(target="a"), run.case(target="b")), run("new", run.case(target="b", outcome="failed"))]
    compared = compare(runs)
    assert [made.column for made in compared.columns] == ["a", "old: b", "new: b"]
    (flip,) = compared.flips
    assert (flip.story, flip.column, flip.outcome, flip.against, flip.was) == (
        "S1",
        "new: b",
        "failed",
        "old: b",
        "passed",
    )
    assert flip.reason == "it failed"


def test_the_matrix_has_all_five_outcomes_and_a_gap_where_nobody_asked(run):
    outcomes = ["passed", "failed", "unsupported", "error", "invalid"]
    first = run("one", *(run.case(f"S{number}", outcome) for number, outcome in enumerate(outcomes)))
    second = run("two", run.case("S0", target="other"))
    rows = compare([first, second]).rows
    assert [row.outcomes["mine"] for row in rows] == outcomes
    assert [row.outcomes.get("other") for row in rows] == ["passed", None, None, None, None]


def test_what_was_not_judged_never_flips(run):
    left = run("one", run.case("S1", "unsupported"), run.case("S2", "error"))
    right = run("two", run.case("S1", "failed", target="b"), run.case("S2", "passed", target="b"))
    assert compare([left, right]).flips == []


def test_shares_count_judged_stories_only(run):
    one = run(
        "one",
        run.case("S1", tags=("recall",)),
        run.case("S2", "failed", tags=("recall",)),
        run.case("S3", "unsupported", tags=("recall", "rare")),
    )
    shares = {(share.kind, share.name): share.columns["mine"] for share in compare([one]).shares}
    assert shares == {("operation", "search"): [1, 2], ("tag", "recall"): [1, 2]}


def test_a_difference_in_retrieval_is_paired_and_has_its_interval(run):
    weak = run("weak", run.retrieval([1, 0, 0, 0, 1, 1, 0, 0], target="a"))
    strong = run("strong", run.retrieval([1, 1, 1, 1, 1, 1, 1, 0], target="b"))
    found = {one.difference.metric: one.difference for one in compare([weak, strong]).differences}
    assert set(found) == {"recall@5", "recall@10", "recall_all@10", "ndcg@10", "mrr"}
    recall = found["recall@10"]
    assert (recall.value, recall.questions, recall.is_better) == (0.5, 8, True)
    assert 0 < recall.low < 0.5 < recall.high < 1


def test_equal_answers_differ_by_exactly_nothing(run):
    runs = [run("one", run.retrieval([1, 2, 0], target="a")), run("two", run.retrieval([1, 2, 0], target="b"))]
    for found in compare(runs).differences:
        assert (found.difference.value, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
        assert not found.difference.is_better
        assert not found.difference.is_worse


def test_questions_that_stand_apart_are_no_part_of_the_difference(run):
    left = run("one", run.retrieval([(1, "plain"), (0, "odd")], target="a", apart=("odd",)))
    right = run("two", run.retrieval([(1, "plain"), (1, "odd")], target="b", apart=("odd",)))
    assert {one.difference.questions for one in compare([left, right]).differences} == {1}
    assert {one.difference.value for one in compare([left, right]).differences} == {0.0}


def test_one_column_can_be_held_against_all_others(run):
    one = run("one", *(run.case(target=name, outcome="passed" if name == "b" else "failed") for name in "abc"))
    against = named_column(columns_of([one]), "b")
    assert [(flip.column, flip.against) for flip in compare([one], against).flips] == [("a", "b"), ("c", "b")]
    two = run("two", *(run.retrieval([1, 0], target=name) for name in "abc"))
    compared = compare([two], named_column(columns_of([two]), "b"))
    assert {(found.column, found.against) for found in compared.differences} == {("a", "b"), ("c", "b")}


def test_an_unknown_column_is_refused_with_the_nearest_name(run):
    with pytest.raises(SetupError, match=r"no column is named 'topisc'\. Did you mean 'topics'"):
        named_column(columns_of([run("one", run.case(target="topics"))]), "topisc")


def test_times_are_of_judged_cases_by_operation(run):
    one = run("one", run.case(seconds=(0.1, 0.2, 0.3)), run.retrieval([1, 1]), run.case("S9", "error"))
    times = {time.operation: time for time in compare([one]).latencies}
    assert times["search"].count == 3
    assert times["search"].whole == Spread(p50_ms=200.0, p95_ms=300.0)
    assert times["search (retrieval)"].count == 2


def test_embedding_is_told_apart_from_the_memory_call_by_call(run):
    about = {"embedder": "small"}
    one = run("one", run.case(seconds=(0.1, 0.2, 0.3), embedding=(0.05, 0.01, 0.3), about=about))
    (time,) = compare([one]).latencies
    assert (time.count, time.told, time.embeds) == (3, 3, True)
    assert [round(time.memory.p50_ms), round(time.memory.p95_ms)] == [50, 190]
    assert [round(time.embedding.p50_ms), round(time.embedding.p95_ms)] == [50, 300]


def test_an_embedder_out_of_reach_is_not_told_rather_than_nothing(run):
    left = run("one", run.case(seconds=(0.1,), embedding=(None,), about={"embedder": "its own"}))
    right = run("two", run.case(seconds=(0.1,), embedding=(None,), about={"store": "words"}, target="words"))
    compared = compare([left, right])
    assert [(time.told, time.embedding is None, time.embeds) for time in compared.latencies] == [
        (0, True, True),
        (1, False, False),
    ]
    lines = [" ".join(line.split()) for line in as_text(comparison_tables(compared)).splitlines()]
    assert "search mine 1 unknown unknown unknown unknown 100.00 100.00" in lines
    assert "search words 1 100.00 100.00 - - 100.00 100.00" in lines


def test_of_calls_that_are_told_in_part_the_number_is_shown(run):
    one = run("one", run.case(seconds=(0.1, 0.1, 0.1), embedding=(0.1, None, 0.1), about={"embedder": "small"}))
    two = run("two", run.case(target="other"))
    assert "3 (2 known)" in as_text(comparison_tables(compare([one, two])))


def test_capabilities_count_every_outcome_and_hide_none(run):
    runs = [
        run(
            name,
            run.case("S1", outcomes[0], target=name, tags=("recall",)),
            run.case("S2", outcomes[1], target=name, tags=("recall", "forget")),
            run.case("S3", outcomes[2], target=name, needs=("delete", "search")),
            run.case("S4", outcomes[3], target=name, tags=("odd",)),
        )
        for name, outcomes in {
            "a": ["passed", "failed", "unsupported", "error"],
            "b": ["passed", "passed", "passed", "invalid"],
        }.items()
    ]
    scores = {score.name: score for score in compare(runs).capabilities}
    assert {name: list(score.stories) for name, score in scores.items()} == {
        "all shared stories": ["S1", "S2", "S3", "S4"],
        "recall": ["S1", "S2"],
        "forget": ["S2", "S3"],
        "other": ["S4"],
    }
    assert scores["forget"].columns["a"] == {
        "passed": 0,
        "failed": 1,
        "measured": 0,
        "unsupported": 1,
        "exhausted": 0,
        "error": 0,
        "invalid": 0,
    }
    lines = [" ".join(line.split()) for line in as_text(comparison_tables(compare(runs))).splitlines()]
    assert "forget 2 0/1 = 0%, 1 unsupported 2/2 = 100%" in lines
    assert "other 1 1 error 1 invalid" in lines


def test_stories_of_one_column_raise_no_score(run):
    left = run("one", run.case("S1", target="a", tags=("recall",)), run.case("S2", target="a", tags=("recall",)))
    right = run("two", run.case("S1", "failed", target="b", tags=("recall",)))
    scores = {score.name: score for score in compare([left, right]).capabilities}
    assert scores["recall"].columns["a"]["passed"] == 1
    assert list(scores["stories of one target"].stories) == ["S2"]


def test_a_story_on_which_columns_differ_is_told_once(run):
    outcomes = {"a": "passed", "b": "failed", "c": "failed", "d": "unsupported"}
    one = run("one", *(run.case(target=name, outcome=outcome) for name, outcome in outcomes.items()))
    (found,) = compare([one]).disagreements
    assert (list(found.passed), list(found.failed), found.reason) == (["a"], ["b", "c"], "it failed")


def test_a_shard_does_not_pretend_to_be_the_whole_run(run):
    runs = [
        run("one", run.case(target="a"), shard=Part(number=2, count=5, cases=1, of=5, digest="d")),
        run("two", run.case(target="b")),
    ]
    assert "a (only shard 2 of 5)" in " ".join(as_text(comparison_tables(compare(runs))).split())


def test_the_middle_of_one_value_is_that_value():
    assert percentile([7], 0.5) == percentile([7], 0.95) == 7


def test_reasons_for_not_being_judged_are_counted(run):
    cases = [run.case(f"S{number}", "unsupported", reason="lacks delete") for number in range(3)]
    inabilities = compare([run("one", *cases, run.case("S8", "error"), run.case("S9"))]).inabilities
    assert [(one.outcome, one.reason, list(one.stories)) for one in inabilities] == [
        ("unsupported", "lacks delete", ["S0", "S1", "S2"]),
        ("error", "it error", ["S8"]),
    ]


def test_versions_and_options_may_differ_and_are_shown(run):
    runs = [run("one", run.case(target="a")), run("two", run.case(target="b"), options={"chat": "big"})]
    facts = [made.facts for made in compare(runs).columns]
    assert [one["store"] for one in facts] == ["v1", "v1"]
    assert [one.get("option chat") for one in facts] == [None, "big"]


def test_a_run_that_was_cut_says_so(run):
    assert "one (cut short)" in as_text(comparison_tables(compare([run("one", run.case(), complete=False)])))


@pytest.mark.parametrize("hostile", ["a|b\n<b>", "\x1b[31m", "[x](http://y)"])
def test_what_a_run_says_cannot_break_a_page(run, hostile):
    runs = [run("one", run.case(target="a")), run("two", run.case(target="b", outcome="failed", reason=hostile))]
    compared = compare(runs)
    page = as_markdown(comparison_document(compared, columns_of(runs)))
    assert hostile not in page
    assert "\x1b" not in as_text(comparison_tables(compared))
    lines = [line for line in page.splitlines() if line.startswith("| S1 | a | b |")]
    assert len(lines) == 1


def test_a_comparison_is_json(run):
    runs = [run("one", run.retrieval([1, 0], target="a")), run("two", run.retrieval([0, 1], target="b"))]
    compared = encode(compare(runs))
    assert json.loads(json.dumps(compared)) == compared


def test_two_equal_runs_have_no_difference_whatever_they_took(run):
    left, right = (
        run("one", run.case(seconds=(0.1,)), run.retrieval([1])),
        run("two", run.case(seconds=(0.9,)), run.retrieval([1])),
    )
    assert differences_in_words(*columns_of([left, right])) == []


def test_differences_name_story_part_and_values(run):
    left = run("one", run.case("S1"), run.retrieval([1]), run.case("S8"))
    right = run("two", run.case("S1", "failed"), run.retrieval([2]), run.case("S9", seconds=(0.1, 0.2)))
    text = "\n".join(differences_in_words(*columns_of([left, right])))
    assert "S1, outcome:" in text
    assert '"passed" to "failed"' in text
    assert "Q1, question 1, q0:" in text
    assert "S8: only in one: mine" in text
    assert "S9: only in two: mine" in text


def test_a_baseline_that_keeps_no_steps_differs_in_nothing_from_its_run(run):
    made = run("one", run.case(), run.retrieval([1]))
    kept = NamedRun(name="kept", run=replace(made.run, cases=[without_steps(case) for case in made.run.cases]))
    assert differences_in_words(*columns_of([kept, made])) == []


def test_the_first_line_says_what_was_left_out_because_the_runs_differ(run):
    narrow = run("generic", run.case("S1"), run.case("S2"))
    wide = run("all", *(run.case(f"S{number}", target="b") for number in range(1, 13)))
    compared = compare([narrow, wide])
    said = "Left out because the runs differ, only in all: S3, S4, S5, S6, S7, S8, S9, S10 and 2 more. Stories: 12, "
    assert as_markdown(comparison_document(compared, columns_of([narrow, wide]))).splitlines()[2].startswith(said)
    assert " ".join(as_text(comparison_tables(compared)).split()).startswith(said)
    assert "Left out" not in as_text(
        comparison_tables(compare([narrow, run("other", run.case("S1"), run.case("S2", target="b"))]))
    )


@pytest.mark.parametrize("name", ["mrrr", "recall@x", "recall@", "mrr@3", "recall@99999"])
def test_a_metric_that_this_version_does_not_know_is_not_compared(make_case, name):
    case = make_case.retrieval()
    strange = replace(case, scores=[*case.scores, Score(metric=name, value=0.5, questions=2)])
    assert metrics_of(strange) == metrics_of(case)
