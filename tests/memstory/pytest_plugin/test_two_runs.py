"""Two runs, one folder of reports: real processes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from memstory_tests_waiting import STARTS_WITHIN, wait_until

from memstory.reporting.writing import report_from_spool
from memstory.results.folder.spool import SPOOL_NAME

pytest_plugins = ["pytester"]

QUICK = "---\n".join(f"story: N{number}\ntitle: t\nsteps: [{{add: My password is hunter2}}]\n" for number in range(3))
HANGING = QUICK + "---\nstory: Z\ntitle: t\nsteps: [{say: hang}]\n"


@pytest.fixture
def first(project):
    """A run that has done three cases and hangs in its fourth."""
    project.story(HANGING)
    spool = project.path / "reports/latest" / SPOOL_NAME
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        wait_until(lambda: spool.exists() and spool.read_bytes().count(b"\n\n") >= 2, STARTS_WITHIN)
        yield process
        process.kill()


def test_a_second_run_is_refused_and_the_first_keeps_its_report(project, first):
    second = project.run_apart("-k", "N1")
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    second.stderr.fnmatch_lines([f"*in use: another run (process {first.pid}) writes its reports there.*--report*"])
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=30)
    assert project.results() == {**dict.fromkeys(("N0", "N1", "N2"), "passed"), "Z": "error"}
    project.run("-k", "N1").assert_outcomes(passed=1, deselected=3)


def test_a_second_run_into_another_folder_is_free_to_go(project, first):
    project.run_apart("-k", "N1", "--report", "elsewhere").assert_outcomes(passed=1, deselected=3)
    assert project.results("elsewhere") == {"N1": "passed"}
    assert first.poll() is None


def test_what_a_killed_run_left_holds_no_secret_and_is_recovered(project, first):
    first.kill()
    first.wait()
    assert b"hunter2" not in (project.path / "reports/latest" / SPOOL_NAME).read_bytes()
    assert "cut short, 3 cases done" in report_from_spool(project.path / "reports/latest")
    assert project.results() == {**dict.fromkeys(("N0", "N1", "N2"), "passed"), "Z": "error"}


def test_runs_of_one_process_after_another_share_a_folder(project):
    project.story(QUICK)
    for _ in range(2):
        project.run().assert_outcomes(passed=3)
    assert sorted(path.name for path in (project.path / "reports/latest").iterdir()) == [
        "recordings.jsonl", "report.html", "report.md", "results.json",
    ]  # fmt: skip


def test_workers_of_one_run_share_its_folder(project):
    project.story(QUICK)
    project.run_apart("-n", "2").assert_outcomes(passed=3)
    assert len(project.results()) == 3


def test_tests_whose_ids_name_a_story_leave_the_last_report_alone(project):
    project.story(QUICK)
    project.run_apart()
    project.pytester.makepyfile(
        test_names="import pytest\n\n@pytest.mark.parametrize('name', ['a.yaml::N1'])\ndef test_name(name): pass\n"
    )
    project.run_apart("-n", "1", "test_names.py").assert_outcomes(passed=1)
    assert project.results() == dict.fromkeys(("N0", "N1", "N2"), "passed")
