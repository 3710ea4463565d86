import doctest
import json
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memstory.reporting import build, make_fingerprint
from memstory.results import document
from memstory.results.document import evidence

VALIDATOR = Draft202012Validator(json.loads((files("memstory.results") / "results.schema.json").read_text()))


def made(results, **options):
    return build(results, make_fingerprint(results, started="2026-11-20T10:00:00+00:00"), **options)


def without_time(tree):
    if isinstance(tree, dict):
        return {
            name: without_time(value)
            for name, value in tree.items()
            if name not in {"seconds", "embedding_seconds", "started"}
        }
    return [without_time(value) for value in tree] if isinstance(tree, list) else tree


def test_doctests_hold():
    assert doctest.testmod(document).failed == 0


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(VALIDATOR.schema)


def test_a_document_of_every_outcome_obeys_the_schema(results):
    VALIDATOR.validate(made(results))


def test_an_empty_run_obeys_the_schema():
    VALIDATOR.validate(made([]))


def test_the_schema_knows_every_field(results):
    found = made(results)
    found["cases"][0]["surprise"] = 1
    assert not VALIDATOR.is_valid(found)


def test_counts_are_by_outcome_and_unsupported_is_not_passed(results):
    assert made(results)["summary"] == {"passed": 2, "failed": 1, "unsupported": 1, "error": 1, "invalid": 1}


def test_cases_are_ordered_by_story_then_target_whatever_order_they_ended_in(results):
    ids = [case["id"] for case in made(results)["cases"]]
    assert ids == ["Q1[topics]", "S5[layers]", "S5[topics]", "S6[topics]", "S9[topics]", "S10[topics]"]
    assert made(results[::-1]) == made(results)


def test_the_same_run_with_other_times_differs_only_in_time_fields(results):
    slower = [
        replace(
            case,
            seconds=9.0,
            trials=tuple(replace(one, recording=replace(one.recording, seconds=7.0)) for one in case.trials),
        )
        for case in results
    ]
    assert made(slower) != made(results)
    assert without_time(made(slower)) == without_time(made(results))


def test_scores_have_six_digits_and_the_last_bits_do_not_show(results):
    question = made(results)["cases"][0]["retrieval"][0]["questions"][1]
    assert question["scores"] == [0.333333, 0.25]


@pytest.mark.parametrize(("number", "written"), [(float("nan"), "nan"), (float("inf"), "inf"), (-1e-9, 0.0)])
def test_numbers_that_json_lacks_become_texts_and_negative_zero_is_zero(make_case, number, written):
    case = replace(make_case(), options={"x": number})
    found = made([case])
    assert json.dumps(found["cases"][0]["options"]["x"]) == json.dumps(written)
    json.dumps(found, allow_nan=False)


def test_a_case_of_several_trials_shows_the_rate_and_the_trial_that_decided(make_case):
    trials = [make_case.trial("passed", 0), make_case.trial("failed", 1), make_case.trial("passed", 2)]
    found = made([make_case(outcome="failed", trials=trials)])
    VALIDATOR.validate(found)
    case = found["cases"][0]
    assert case["shown"] == 1
    assert (case["rate"]["passed"], case["rate"]["trials"]) == (2, 3)
    assert case["rate"]["pass_hat"] == [pytest.approx(2 / 3, abs=1e-6), pytest.approx(1 / 3, abs=1e-6), 0.0]
    assert not case["verdicts"][0]["passed"]
    assert [evidence(case, trial)["verdicts"][0]["passed"] for trial in case["trials"]] == [True, False, True]


def test_trials_that_broke_count_in_no_rate(make_case):
    trials = [make_case.trial("passed", 0), make_case.trial("error", 1)]
    case = made([make_case(outcome="error", trials=trials)])["cases"][0]
    assert (case["rate"]["passed"], case["rate"]["trials"]) == (1, 1)


def test_metrics_are_the_totals_and_their_mean_over_trials(make_case):
    case = make_case.retrieval()
    (trial,) = case.trials
    better = replace(trial, scores=tuple(replace(score, value=score.value / 2) for score in trial.scores))
    found = made([replace(case, trials=(trial, better))])["cases"][0]
    assert found["metrics"]["recall@5"] == 0.5625
    assert found["trials"][1]["metrics"]["recall@5"] == 0.375


def test_levels_are_kept_apart_and_the_first_gives_the_metrics(make_case):
    case = make_case.retrieval()
    (trial,) = case.trials
    easy = tuple(replace(score, level={"distractors": 0}) for score in trial.scores)
    hard = tuple(replace(score, level={"distractors": 200}, value=0.1) for score in trial.scores)
    found = made([replace(case, trials=(replace(trial, scores=easy + hard),))])["cases"][0]
    assert found["metrics"]["mrr"] == 0.75
    assert len(found["scores"]) == 24


def test_a_pass_that_checked_nothing_is_warned_of(make_case):
    trial = replace(make_case.trial(), verdicts=())
    assert "without a single check" in made([make_case(trials=[trial])])["cases"][0]["warnings"][0]


def test_a_fingerprint_tells_what_must_be_equal_and_what_answered(results):
    found = make_fingerprint(results, options={"chat": "offline"})
    assert found["targets"]["topics"]["embedder"] == ["all-MiniLM-L6-v2"]
    assert found["stories"]["Q1"]["retrieval"] == [
        {"name": "facts", "digest": "abcdef0123456789", "k": 10, "documents": 60, "level": {}}
    ]
    assert found["stories"]["S5"] == {"digest": "d" * 64, "trials": 1, "seeds": [0], "retrieval": []}
    assert found["options"] == {"chat": "offline"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_whatever_a_backend_returned_can_be_written(value):
    rounded = document._rounded(value)
    assert json.loads(json.dumps(rounded, allow_nan=False)) == rounded
