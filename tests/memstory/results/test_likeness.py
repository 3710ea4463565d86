from dataclasses import replace

import pytest

from memstory.results.likeness import run_differences


def test_runs_of_the_same_stories_differ_in_nothing_whatever_the_target(run):
    runs = [run("one", run.case(target="a"), run.retrieval([1], target="a")),
            run("two", run.case(target="b", outcome="failed"), run.retrieval([0], target="b"))]  # fmt: skip
    assert run_differences(runs) == []


def test_a_target_that_recorded_no_data_is_like_any(run):
    runs = [run("one", run.retrieval([1], target="a")), run("two", run.case("Q1", "unsupported", target="b"))]
    assert run_differences(runs) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"digest": "other"}, "Q1: another data of 'facts': data in one, other in two"),
        ({"k": 5}, "Q1: another k of 'facts': 10 in one, 5 in two"),
    ],
)
def test_other_data_or_another_k_is_told(run, changed, said):
    assert run_differences([run("one", run.retrieval([1])), run("two", run.retrieval([1], **changed))]) == [said]


def test_another_story_under_the_same_name_is_told(run):
    runs = [run("one", run.case()), run("two", run.case(digest="4567")), run("three", run.case())]
    assert run_differences(runs) == ["S1: another text of the story: 0123 in one and three, 4567 in two"]


def test_trials_and_seeds_are_told(run):
    assert run_differences([run("one", run.case()), run("two", run.case(trials=3))]) == [
        "S1: another number of trials: 1 in one, 3 in two"
    ]
    assert run_differences([run("one", run.case(seeds=[4])), run("two", run.case(seeds=[5]))]) == [
        "S1: another seed: [4] in one, [5] in two"
    ]


def test_runs_without_a_common_story_have_nothing_to_compare(run):
    assert run_differences([run("one", run.case("S1")), run("two", run.case("S2"))]) == [
        "no story is in more than one of the runs"
    ]


def test_a_story_that_only_one_run_has_is_no_difference(run):
    assert run_differences([run("one", run.case("S1")), run("two", run.case("S1"), run.case("S2"))]) == []


def test_one_run_is_always_like_itself(run):
    assert run_differences([run("one", run.case())]) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"k": 5}, "another k of 'facts': 10 in one, 5 in two"),
        ({"k": 5, "text": "4567"}, "another k of 'facts': 10 in one, 5 in two"),
        ({"digest": "other", "documents": 49}, "another data of 'facts': data in one, other in two"),
    ],
)
def test_one_cause_is_one_line_for_all_stories_and_targets(run, changed, said):
    def made(name, text="0123", **fields):
        cases = [
            run.retrieval([1], story=f"Q{number}", target=target, **fields) for number in range(12) for target in "ab"
        ]
        return run(name, *(replace(case, digest=text) for case in cases))

    stories = "Q0, Q1, Q2, Q3, Q4, Q5, Q6, Q7 and 4 more"
    assert run_differences([made("one"), made("two", **changed)]) == [f"{stories}: {said}"]


def test_where_the_values_differ_too_the_line_has_those_of_the_first_story(run):
    runs = [run(name, *(run.case(f"S{n}", digest=f"{name}{n}") for n in (2, 10, 1))) for name in ("one", "two")]
    assert run_differences(runs) == ["S1, S2, S10: another text of the story: one1 in one, two1 in two (S1)"]
