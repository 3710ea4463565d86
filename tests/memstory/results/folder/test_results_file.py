import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import SetupError
from memstory.results.fingerprint import make_fingerprint
from memstory.results.folder import results_file
from memstory.results.folder.results_file import read_results, results_text, write_results
from memstory.results.runs import make_run


def without_time(tree):
    if isinstance(tree, dict):
        return {
            name: without_time(value)
            for name, value in tree.items()
            if name not in {"seconds", "embedding_seconds", "started"}
        }
    return [without_time(value) for value in tree] if isinstance(tree, list) else tree


def text_of(cases):
    return results_text(make_run(cases, make_fingerprint(cases)))


def test_what_is_written_is_read_as_the_same_run(tmp_path, results, run_of):
    run = run_of(results)
    write_results(tmp_path / "results.json", run)
    assert read_results(tmp_path / "results.json") == run


def test_each_case_has_a_line_of_its_own(results):
    lines = [line for line in text_of(results).splitlines() if line.startswith('{"id":')]
    assert len(lines) == len(results)


def test_no_step_is_in_the_file(make_case):
    assert "Your language is Elixir." not in text_of([make_case(trials=[replace(make_case.trial(), verdicts=())])])


def test_the_same_run_with_other_times_differs_only_in_time_fields(results):
    slower = [
        replace(
            case,
            seconds=9.0,
            trials=tuple(replace(one, recording=replace(one.recording, seconds=7.0)) for one in case.trials),
        )
        for case in results
    ]
    assert text_of(slower) != text_of(results)
    assert without_time(json.loads(text_of(slower))) == without_time(json.loads(text_of(results)))


def test_scores_have_six_digits_and_the_last_bits_do_not_show(results):
    case = json.loads(text_of(results))["cases"][0]
    assert case["trials"][0]["recording"]["retrieval"][0]["questions"][1]["scores"] == [0.333333, 0.25]


@pytest.mark.parametrize(("number", "written"), [(float("nan"), "nan"), (float("inf"), "inf"), (-1e-9, 0.0)])
def test_numbers_that_json_lacks_become_texts_and_negative_zero_is_zero(make_case, number, written):
    text = text_of([replace(make_case(), options={"x": number})])
    assert json.dumps(json.loads(text)["cases"][0]["options"]["x"]) == json.dumps(written)


def test_a_score_that_is_not_finite_is_read_as_a_number(tmp_path, make_case):
    case = make_case.retrieval()
    (trial,) = case.trials
    (task,) = trial.recording.retrieval
    asked = replace(task.questions[0], scores=(float("inf"), None))
    recording = replace(trial.recording, retrieval=(replace(task, questions=(asked,)),))
    write_results(
        tmp_path / "results.json",
        make_run([replace(case, trials=(replace(trial, recording=recording),))], make_fingerprint([])),
    )
    (read,) = read_results(tmp_path / "results.json").cases
    assert read.retrieval[0].questions[0].scores == (float("inf"), None)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"outcome":"failed"', '"outcome":"faild"', r"damaged at cases\[3\].outcome: 'faild' is none of 'passed', "),
        (
            '"outcome":"failed"',
            '"outcome":"failed","harm":"rude"',
            r"damaged at cases\[3\].harm: 'rude' is none of 'leak'",
        ),
        ('"complete": true', '"complete": "yes"', "damaged at complete: 'yes' is not true or false"),
        ('"covers":', '"colour":', r"damaged at cases\[0\]: CaseResult has no colour"),
        ('"memstory.results/2"', '"memstory.results/1"', "'memstory.results/1' \\(an older memstory wrote it\\), this"),
    ],
)
def test_a_broken_file_is_one_line_with_its_place(tmp_path, results, before, after, said):
    path = tmp_path / "results.json"
    path.write_text(text_of(results).replace(before, after, 1), "utf-8")
    with pytest.raises(SetupError, match=said) as caught:
        read_results(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_whatever_a_backend_returned_can_be_written(value):
    rounded = results_file.rounded(value)
    assert json.loads(json.dumps(rounded, allow_nan=False)) == rounded
