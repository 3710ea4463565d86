import pytest

from memstory.reporting.writing import begin_reports, write_reports
from memstory.results.fingerprint import make_fingerprint
from memstory.results.folder.last_run import LastRun
from memstory.results.runs import make_run


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
