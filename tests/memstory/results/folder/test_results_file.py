import gzip
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.cli import main
from memstory.contract.errors import SetupError
from memstory.reporting.gate import gate
from memstory.results.folder import results_file
from memstory.results.folder.results_file import (
    ResultsFile,
    case_line,
    read_results,
    results_text,
    without_steps,
    write_results,
)
from memstory.results.runs import NamedRun, make_fingerprint, make_run


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
    rounded = results_file.round_numbers(value)
    assert json.loads(json.dumps(rounded, allow_nan=False)) == rounded


@pytest.mark.parametrize("file", ["results.json", "base.json.gz"])
def test_a_file_that_is_read_judges_as_its_run_does(tmp_path, run, file):
    old = run("old", run.case(trials=3), run.retrieval([1, 2, 10] * 7, seconds=3.5))
    new = run("new", run.case(trials=3), run.retrieval([0, 2, 9] * 7))
    write_results(tmp_path / file, old.run)
    kept = NamedRun(name="old", run=read_results(tmp_path / file))
    assert gate(kept, new) == gate(old, new)
    assert gate(new, kept) == gate(new, old)


def test_the_published_runs_keep_the_verdicts_and_times_that_reports_need():
    run = read_results(Path(__file__).parents[4] / "reports/baseline/reference.json.gz")
    trials = [trial for case in run.cases if not case.retrieval for trial in case.trials if trial.outcome == "passed"]
    assert all(trial.times for trial in trials)
    assert any(trial.verdicts for trial in trials)


def test_a_gzipped_file_that_is_cut_is_named(tmp_path):
    path = tmp_path / "base.json.gz"
    path.write_bytes(gzip.compress(b"{}")[:-6])
    with pytest.raises(SetupError, match=r"base\.json\.gz is not JSON"):
        read_results(path)


def test_a_small_file_that_would_fill_the_memory_is_refused_at_the_limit(tmp_path, capsys):
    piece = gzip.compress(b" " * 2**24)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(piece * (results_file.MOST_UNPACKED // 2**24 + 64))  # a GiB more than the limit
    tracemalloc.start()
    code = main(["compare", str(path)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert f"bomb.json.gz holds more than {results_file.MOST_UNPACKED} bytes" in said.err
    assert "gate --update" in said.err
    assert peak < 1.5 * results_file.MOST_UNPACKED


LITTLE_MEMORY = """
import resource, sys
from memstory.cli import main
import memstory.commands.results.compare
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, -1))
sys.exit(main(["compare", sys.argv[1]]))
"""


@pytest.mark.parametrize("file", ["base.json", "base.json.gz"])
def test_a_file_that_needs_more_memory_than_there_is_is_one_line(tmp_path, file):
    path = tmp_path / file
    text = f"[{', '.join(['[]'] * 2_000_000)}]".encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    run = subprocess.run([sys.executable, "-c", LITTLE_MEMORY, path], capture_output=True, text=True, check=False)  # noqa: S603
    assert (run.returncode, run.stdout) == (2, ""), run.stderr
    assert run.stderr.startswith(f"memstory compare: {path} needs more memory")
    assert run.stderr.count("\n") == 1


def test_the_times_of_all_steps_stay(make_case):
    (trial,) = without_steps(make_case()).trials
    (time,) = trial.times
    assert (time.path, time.op, time.seconds) == ((0,), "say", 0.125)
    assert (trial.recording.steps, trial.recording.tools) == ((), ())


def test_of_a_trial_that_failed_it_is_kept_what_the_agent_did(make_case):
    (trial,) = without_steps(make_case(outcome="failed")).trials
    (did,) = trial.agent
    assert (did.said, did.turn.answer) == ("What language do I prefer?", "Your language is Elixir.")
    assert [(call.name, call.result) for call in did.turn.tool_calls] == [("memory_recall", "Elixir")]


def test_of_a_trial_that_passed_it_is_not(make_case):
    (trial,) = without_steps(make_case()).trials
    assert trial.agent == ()


def test_an_extract_of_an_extract_is_the_same(make_case):
    once = without_steps(make_case(outcome="failed"))
    assert without_steps(once) == once


@pytest.mark.parametrize("file", ["results.json", "results.json.gz"])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_file_that_is_gone_through_case_by_case_is_the_same_run_each_time(tmp_path, results, run_of, file, count):
    run = run_of(results[:count])
    write_results(tmp_path / file, run)
    read = ResultsFile(tmp_path / file)
    assert replace(read.head, cases=tuple(read)) == run == read_results(tmp_path / file)
    assert tuple(read) == run.cases


def test_a_file_that_another_program_wrote_anew_is_read_too(tmp_path, results, run_of):
    path = tmp_path / "results.json"
    run = run_of(results)
    path.write_text(json.dumps(json.loads(results_text(run)), sort_keys=True), "utf-8")
    assert tuple(ResultsFile(path)) == run.cases


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[:-3], "is not JSON: it is cut off behind case 4"),
        (lambda lines: [*lines[:-2], lines[-2] + ",", lines[-1]], "is not JSON: a case is missing behind case 6"),
        (lambda lines: [*lines[:-3], lines[-3].rstrip(","), *lines[-2:]], "is not JSON: it is cut off behind case 5"),
        (lambda lines: [*lines[:-3], lines[-3][:-9] + ",", *lines[-2:]], "is not JSON: it is damaged in case 5: "),
        (
            lambda lines: [*lines[:-2], lines[-2].replace('"outcome":"', '"outcome":"x', 1), lines[-1]],
            r"cases\[5\].out",
        ),
    ],
)
def test_a_damaged_file_is_found_damaged_on_the_way(tmp_path, results, change, said):
    path = tmp_path / "results.json"
    path.write_text("\n".join(change(text_of(results).splitlines())) + "\n", "utf-8")
    with pytest.raises(SetupError, match=said):
        list(ResultsFile(path))
    with pytest.raises(SetupError, match=said) as caught:
        read_results(path)
    assert "un the stories again" in str(caught.value)


def test_a_run_that_is_written_case_by_case_is_the_same_file(tmp_path, results, run_of):
    run = run_of(results)
    write_results(tmp_path / "whole.json", run)
    write_results(tmp_path / "streamed.json", replace(run, cases=()), map(case_line, run.cases))
    assert (tmp_path / "streamed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
