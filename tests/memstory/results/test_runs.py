import doctest
from dataclasses import replace

import pytest

from memstory.results import runs as module
from memstory.results.runs import make_fingerprint


def test_doctests_hold():
    assert doctest.testmod(module).failed == 0


def test_counts_are_by_outcome_and_unsupported_is_not_passed(results, run_of):
    assert run_of(results).summary == {
        "passed": 2,
        "failed": 1,
        "measured": 0,
        "unsupported": 1,
        "exhausted": 0,
        "error": 1,
        "invalid": 1,
    }


def test_cases_are_ordered_by_story_then_target_whatever_order_they_ended_in(results, run_of):
    ids = [case.id for case in run_of(results).cases]
    assert ids == ["Q1[topics]", "S5[layers]", "S5[topics]", "S6[topics]", "S9[topics]", "S10[topics]"]
    assert run_of(results[::-1]) == run_of(results)


def test_a_fingerprint_tells_what_answered(results):
    found = make_fingerprint(results, options={"chat": "offline"})
    assert found.targets["topics"]["embedder"] == ["all-MiniLM-L6-v2"]
    assert found.options == {"chat": "offline"}


def test_a_row_of_a_story_is_named_with_it(make_case):
    assert [make_case("S5").name, replace(make_case("S5"), row="b").name] == ["S5", "S5[b]"]


def test_a_story_that_could_not_be_read_has_no_deciding_trial(make_case):
    case = make_case(outcome="invalid", trials=[])
    assert (case.deciding, case.retrieval, case.rate) == (None, (), None)


@pytest.mark.parametrize(("retrieved", "places"), [(("a", "x", "b"), (1, 3)), (("a", "a", "b"), (1, 2)), ((), ())])
def test_places_of_gold_count_an_id_once(make_case, retrieved, places):
    question = make_case.retrieval().retrieval[0].questions[0]
    assert replace(question, relevant=("a", "b"), retrieved=retrieved).places == places
