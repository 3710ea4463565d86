from dataclasses import replace

import pytest

from memstory.contract.codec import encode
from memstory.contract.errors import SetupError
from memstory.reporting.writing import begin_reports, write_reports
from memstory.results.folder.recordings_file import (
    RECORDINGS_NAME,
    LastRun,
    RecordedCases,
    read_recordings,
    with_steps,
    write_recordings,
)
from memstory.results.folder.results_file import ResultsFile, write_results
from memstory.results.runs import make_fingerprint, make_run


def test_results_and_recordings_together_are_the_run_as_it_was(tmp_path, results, run_of):
    write_recordings(tmp_path / RECORDINGS_NAME, results)
    run = with_steps(run_of(results), read_recordings(tmp_path / RECORDINGS_NAME))
    read = {case.id: case for case in run.cases}
    assert read.keys() == {case.id for case in results}
    for case in results:
        steps = [encode(trial.recording.steps) for trial in case.trials]
        assert [encode(trial.recording.steps) for trial in read[case.id].trials] == steps


def test_a_line_holds_a_trial_whatever_characters_it_has(tmp_path, make_case):
    text = "line end \u2028 surrogate \ud800 control \x1b"
    path = tmp_path / RECORDINGS_NAME
    write_recordings(path, [make_case(trials=(make_case.trial(answer=text),))])
    (read,) = read_recordings(path).values()
    assert read.steps[0].result["answer"] == text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", ":1: this line is damaged"),
        ('{"schema": "memstory.recordings/1"}', ":1: the recording has the form 'memstory.recordings/1', this version"),
        ('{"schema": "memstory.recordings/2", "case": "A"}', r":1: the recording is not complete \(trial is missing\)"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path, line, said):
    path = tmp_path / RECORDINGS_NAME
    path.write_text(line, "utf-8")
    with pytest.raises(SetupError, match=said):
        read_recordings(path)


@pytest.fixture
def last(tmp_path, make_case):
    cases = [make_case()]
    write_reports(tmp_path, make_run(cases, make_fingerprint(cases)))
    kept = LastRun.in_folder(tmp_path)
    begin_reports(tmp_path).release()
    return kept


def test_the_run_before_is_kept_with_its_steps_while_its_files_go(last, tmp_path):
    assert not (tmp_path / "results.json").exists()
    (case,) = last.read().cases
    assert case.trials[0].recording.steps


def test_a_folder_without_a_run_or_with_one_of_another_version_has_no_last_run(tmp_path):
    assert LastRun.in_folder(tmp_path / "nowhere").read() is None
    (tmp_path / "results.json").write_text('{"schema": "memstory.results/1"}')
    assert LastRun.in_folder(tmp_path).read() is None


def test_cases_are_read_with_their_steps_one_by_one(tmp_path, results):
    run = make_run(results, make_fingerprint(results))
    write_results(tmp_path / "results.json", run)
    write_recordings(tmp_path / RECORDINGS_NAME, run.cases)
    both = RecordedCases(ResultsFile(tmp_path / "results.json"), tmp_path / RECORDINGS_NAME)
    assert (
        list(both)
        == list(both)
        == list(with_steps(run_at(tmp_path), read_recordings(tmp_path / RECORDINGS_NAME)).cases)
    )


def run_at(folder):
    file = ResultsFile(folder / "results.json")
    return replace(file.head, cases=tuple(file))


def test_a_case_of_which_nothing_was_recorded_is_as_the_results_have_it(tmp_path, make_case):
    cases = [make_case("S1"), make_case("S2"), make_case("S3")]
    write_results(tmp_path / "results.json", make_run(cases, make_fingerprint(cases)))
    write_recordings(tmp_path / RECORDINGS_NAME, [cases[0], cases[2]])
    read = RecordedCases(ResultsFile(tmp_path / "results.json"), tmp_path / RECORDINGS_NAME)
    assert [len(case.trials[0].recording.steps) for case in read] == [1, 0, 1]


def test_steps_of_a_case_that_the_results_have_not_or_have_elsewhere_are_refused(tmp_path, make_case):
    cases = [make_case("S1"), make_case("S2")]
    write_results(tmp_path / "results.json", make_run(cases, make_fingerprint(cases)))
    for recorded, first in ([make_case("S0"), *cases], "S0"), (cases[::-1], "S1"):
        write_recordings(tmp_path / RECORDINGS_NAME, recorded)
        with pytest.raises(SetupError, match=rf"recordings.jsonl has the case '{first}\[topics\]' where"):
            list(RecordedCases(ResultsFile(tmp_path / "results.json"), tmp_path / RECORDINGS_NAME))
