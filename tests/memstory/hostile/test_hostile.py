"""Whatever a target does, each selected case is in the results, the run ends, and nothing is left behind.

Real processes: `memstory run` on one hostile target and a good one after it, in process, with two workers, isolated.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memstory_tests_waiting import wait_until

HERE = Path(__file__).parent
MODES = {"in-process": (), "workers": ("-n", "2"), "isolated": ("--isolate",)}
STORIES = """\
story: H1
title: What was told is found
steps:
  - add: The spare key hangs behind the pantry door.
  - search: Where does the spare key hang?
    expect: {hits: {count: 1}}
---
story: H2
title: What was told is listed
steps:
  - add: The boat is called Heron.
  - list:
    expect: {hits: {count: 1}}
"""
CASES = {f"{story}[hostile_targets:{{}}]" for story in ("H1", "H2")} | {
    "H1[hostile_targets:good]",
    "H2[hostile_targets:good]",
}


def moods():
    sys.path.insert(0, str(HERE))
    try:
        import hostile_targets  # noqa: PLC0415  (it is here for these tests alone)
    finally:
        sys.path.remove(str(HERE))
    return [name for name in hostile_targets.MOODS if name not in {"good", NO_REPORT}]


REPORT = {"recordings.jsonl", "report.html", "report.md", "results.json"}
NO_REPORT = "puts_a_file_in_place_of_all_reports"
QUICK = (
    "exits_at_once",
    "segfaults",
    "exits_in_a_task",
    "interrupts",
    "stops_the_loop",
    "answers_a_huge_number",
    "removes_all_workspaces",
    "leaves_a_thread",
    "exits_at_once_and_leaves_a_copy",
    "makes_json_of_its_own",
)
ENDS_ITS_PROCESS = {
    "exits_at_once", "exits_at_once_while_it_opens", "exits_at_once_while_it_closes", "exits_at_once_from_a_thread",
    "exits_by_the_c_library", "segfaults", "aborts", "kills_itself", "becomes_another_program", "terminates_itself",
    "interrupts_in_a_task", "removes_the_report", "exits_at_once_and_leaves_a_copy", "kills_its_group",
    "puts_a_file_in_place_of_the_report",
    # Or takes away what pytest writes its report with.
    "makes_json_of_its_own", "lets_no_file_grow",
}  # fmt: skip


TAKES_FROM_OTHERS = {"closes_standard_output", "closes_all_files"}


class Ran:
    """One run: how it ended, what it wrote, what it left."""

    def __init__(self, folder, mood, words, starter="memstory run"):
        (folder / "h.story.yaml").write_text(STORIES)
        (folder / "tmp").mkdir()
        self.folder = folder
        self.mark = f"HOSTILE_MARK={folder}"
        name, _, value = self.mark.partition("=")
        python_path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
        environ = {**os.environ, name: value, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": python_path}
        targets = ("--target", f"hostile_targets:{mood}", "--target", "hostile_targets:good")
        start = (sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())", "run")
        if starter == "pytest":
            start = (sys.executable, "-m", "pytest", "h.story.yaml")
        with (folder / "out.txt").open("wb") as out:
            self.process = subprocess.Popen(  # noqa: S603  (our own interpreter)
                [*start, "-q", "-p", "no:cacheprovider", "--case-timeout", "3", *targets, *words],
                cwd=folder, env=environ, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    def end(self, seconds=120):
        try:
            self.code = self.process.wait(seconds)
        finally:
            time.sleep(0.3)
            self.left = self.still_running()
            for pid in self.left:
                os.kill(pid, 9)
            self.process.wait(10)  # one that was killed just now would be a warning in some later test
        return self

    def still_running(self):
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (place / "environ").read_bytes().split(b"\0"):
                    found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    @property
    def said(self):
        return (self.folder / "out.txt").read_text("utf-8", "replace")[-4000:]

    def reasons(self):
        document = json.loads((self.folder / "reports/latest/results.json").read_text("utf-8"))
        return {case["id"]: case["reason"] for case in document["cases"] if case["outcome"] == "error"}

    def results(self):
        document = json.loads((self.folder / "reports/latest/results.json").read_text("utf-8"))
        return document["complete"], {case["id"]: case["outcome"] for case in document["cases"]}


def check(folder, mood, mode):
    ran = Ran(folder, mood, MODES[mode]).end()
    assert ran.left == {}, ran.said
    assert [path.name for path in (folder / "tmp").glob("memstory-*")] == [], ran.said
    complete, outcomes = ran.results()
    assert set(outcomes) == {case.format(mood) for case in CASES}, ran.said
    if complete and mood not in TAKES_FROM_OTHERS:
        assert {outcomes[f"{story}[hostile_targets:good]"] for story in ("H1", "H2")} == {"passed"}, ran.said
    elif not complete:
        assert mood in ENDS_ITS_PROCESS, ran.said
        assert mode != "isolated", ran.said
        assert "error" in outcomes.values()
    if set(outcomes.values()) != {"passed"}:
        assert ran.code != 0, ran.said
    elif mood not in {"raises_while_it_stops", "exits_at_once_while_it_stops"}:
        assert ran.code == 0, ran.said


@pytest.mark.parametrize("mood", QUICK)
def test_no_case_is_lost_in_process(tmp_path, mood):
    check(tmp_path, mood, "in-process")


@pytest.mark.parametrize(
    ("mood", "mode"),
    [
        ("segfaults", "workers"),
        pytest.param("exits_at_once", "isolated", marks=pytest.mark.slow),
        pytest.param("kills_its_group", "workers", marks=pytest.mark.slow),
    ],
)
def test_no_case_is_lost_in_another_process(tmp_path, mood, mode):
    check(tmp_path, mood, mode)


@pytest.mark.parametrize("mood", [pytest.param("segfaults", marks=pytest.mark.slow), "exits_at_once"])
def test_where_one_case_ended_all_others_it_is_said_how_to_run_them(tmp_path, mood):
    (tmp_path / "isolated").mkdir()
    told, ran = Ran(tmp_path, mood, ()).end(), Ran(tmp_path / "isolated", mood, ("--isolate",)).end()
    assert set(told.reasons()) == {case.format(mood) for case in CASES}
    assert all("--isolate gives each case its own process" in reason for reason in told.reasons().values())
    assert "memstory: --isolate gives each case its own process" in told.said
    assert set(ran.reasons()) == {f"H1[hostile_targets:{mood}]"}
    assert "--isolate gives" not in ran.said


@pytest.mark.parametrize("mood", ["exits_at_once_while_it_loads", "exits_at_once_while_it_stops"])
def test_plain_pytest_does_not_end_with_0_where_a_target_does(tmp_path, mood):
    assert Ran(tmp_path, mood, (), starter="pytest").end().code == 3


def test_a_copy_of_the_process_says_and_writes_nothing_at_its_end(tmp_path):
    ran = Ran(tmp_path, "forks_while_it_stops", ()).end()
    assert ran.said.count("report.md") == 1
    assert ran.results()[0]


def test_a_file_in_place_of_the_report_is_set_aside(tmp_path):
    ran = Ran(tmp_path, "puts_a_file_in_place_of_the_report", ()).end()
    assert (ran.code, ran.results()[0]) == (0, True), ran.said
    assert (tmp_path / "reports/latest.set-aside").read_text("utf-8") == "mine"


def test_a_report_that_cannot_be_written_ends_the_run_with_one_message(tmp_path):
    ran = Ran(tmp_path, NO_REPORT, ()).end()
    assert (ran.code, "INTERNALERROR" in ran.said, "Traceback" in ran.said) == (3, False, False)
    assert ran.said.count("the reports could not be written to ") == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("pauses", [(), (0.0,), (0.3,), (0.1, 0.1)], ids=["once", "at-once", "twice", "thrice"])
def test_an_interrupted_run_loses_no_case_and_leaves_nothing(tmp_path, mode, number, pauses):
    ran = Ran(tmp_path, "hangs", (*MODES[mode], "--case-timeout", "600"))
    wait_until(lambda: (tmp_path / "hangs").exists() or ran.process.poll() is not None)
    assert ran.process.poll() is None, ran.said
    ran.process.send_signal(number)
    for pause in pauses:
        time.sleep(pause)
        ran.process.send_signal(number)
    ran.end()
    assert (ran.code, ran.left) == (2, {}), ran.said
    assert "The run was interrupted" in ran.said
    assert "Traceback" not in ran.said
    complete, outcomes = ran.results()
    assert not complete
    assert set(outcomes) == {case.format("hangs") for case in CASES}
    assert "error" in outcomes.values()
    assert list((tmp_path / "tmp").glob("memstory-*")) == []
    assert {path.name for path in (tmp_path / "reports/latest").iterdir()} == REPORT


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mood", moods())
def test_no_case_is_lost_whatever_a_target_does(tmp_path, mood, mode):
    check(tmp_path, mood, mode)
