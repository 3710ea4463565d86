import pytest

from memstory.results.likeness import what_differs


def test_runs_of_the_same_stories_differ_in_nothing_whatever_the_target(run):
    runs = [run("one", run.case(target="a"), run.retrieval([1], target="a")),
            run("two", run.case(target="b", outcome="failed"), run.retrieval([0], target="b"))]  # fmt: skip
    assert what_differs(runs) == []


def test_a_target_that_recorded_no_data_is_like_any(run):
    runs = [run("one", run.retrieval([1], target="a")), run("two", run.case("Q1", "unsupported", target="b"))]
    assert what_differs(runs) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"digest": "other"}, "Q1: the data of 'facts' is data in one, other in two"),
        ({"k": 5}, "Q1: k of 'facts' is 10 in one, 5 in two"),
    ],
)
def test_other_data_or_another_k_is_told(run, changed, said):
    assert what_differs([run("one", run.retrieval([1])), run("two", run.retrieval([1], **changed))]) == [said]


def test_another_story_under_the_same_name_is_told(run):
    runs = [run("one", run.case()), run("two", run.case(digest="4567")), run("three", run.case())]
    assert what_differs(runs) == ["S1: the story's digest is 0123 in one and three, 4567 in two"]


def test_trials_and_seeds_are_told(run):
    assert what_differs([run("one", run.case()), run("two", run.case(trials=3))]) == [
        "S1: the number of trials is 1 in one, 3 in two",
        "S1: the seeds is [0] in one, [0, 1, 2] in two",
    ]
    assert what_differs([run("one", run.case(seeds=[4])), run("two", run.case(seeds=[5]))]) == [
        "S1: the seeds is [4] in one, [5] in two"
    ]


def test_runs_without_a_common_story_have_nothing_to_compare(run):
    assert what_differs([run("one", run.case("S1")), run("two", run.case("S2"))]) == [
        "no story is in more than one of the runs"
    ]


def test_a_story_that_only_one_run_has_is_no_difference(run):
    assert what_differs([run("one", run.case("S1")), run("two", run.case("S1"), run.case("S2"))]) == []


def test_one_run_is_always_like_itself(run):
    assert what_differs([run("one", run.case())]) == []
