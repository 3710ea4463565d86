"""What a session loads once, and what it leaves behind however it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from memstory_tests_waiting import STARTS_WITHIN, wait_until

pytest_plugins = ["pytester"]

MANY = "---\n".join(f"story: N{number}\ntitle: t\nsteps: [{{add: x}}, {{say: hello}}]\n" for number in range(8))


def test_a_factory_is_started_once_and_stopped_once(project):
    project.story(MANY)
    project.run().assert_outcomes(passed=8)
    assert (project.path / "starts.txt").read_text().split() == ["start", "stop"]


def test_a_target_whose_stories_are_deselected_is_never_started(project):
    project.story(MANY)
    project.run("-k", "nothing")
    assert not (project.path / "starts.txt").exists()


def test_reports_are_written_where_asked_also_when_stories_fail(project):
    # H-13
    project.story(
        MANY.replace("N3\ntitle: t\nsteps: [{add: x}", "N3\ntitle: t\nsteps: [{add: x, expect: {receipt: {length: 9}}}")
    )
    assert project.run("--report", "out/here").ret == 1
    assert (project.path / "out/here/report.md").exists()
    assert project.results("out/here")["N3"] == "failed"


def _cases_in(spool):
    return len(spool.read_text().split("\n\n")) if spool.exists() else 0


def test_two_workers_report_together(project):
    # H-13
    project.story(MANY + "---\n" + MANY.replace("hello", "break").replace("story: N", "story: B"))
    result = project.run_apart("-n", "2")
    result.assert_outcomes(passed=8, errors=8)
    outcomes = project.results()
    assert len(outcomes) == 16
    assert outcomes["N1"] == "passed"
    assert outcomes["B1"] == "error"
    result.stdout.fnmatch_lines(["*8 passed*", "report: *report.md"])


def test_an_interrupt_leaves_a_report_of_what_was_done(project):
    project.story(
        MANY.replace(
            "story: N5\ntitle: t\nsteps: [{add: x}, {say: hello}]", "story: N5\ntitle: t\nsteps: [{say: interrupt}]"
        )
    )
    result = project.run_apart("-p", "no:randomly")
    assert result.ret == 2
    done, others = [f"N{number}" for number in range(5)], ["N5", "N6", "N7"]
    assert project.results() == {**dict.fromkeys(done, "passed"), **dict.fromkeys(others, "error")}
    result.stdout.fnmatch_lines(["The run was interrupted. no result: N5*, N6*, N7*"])


def test_ctrl_c_while_a_story_waits_leaves_a_report(project):
    project.story(MANY + "---\nstory: Z\ntitle: t\nsteps: [{say: hang}]\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q"], cwd=project.path, stdout=subprocess.PIPE, text=True
    )
    wait_until((project.path / "hangs").exists, STARTS_WITHIN)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 2
    assert project.results() == {**{f"N{number}": "passed" for number in range(8)}, "Z": "error"}
    assert json.loads((project.path / "reports/latest/results.json").read_text())["complete"] is False


def test_a_killed_run_leaves_its_spool_and_the_next_run_starts_clean(project, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(project.path))
    project.story(MANY + "---\nstory: Z\ntitle: t\nsteps: [{say: hang}]\n")
    project.run("-k", "N1")
    process = subprocess.Popen([sys.executable, "-m", "pytest", "-q"], cwd=project.path, stdout=subprocess.DEVNULL)
    spool = project.path / "reports/latest/spool.jsonl"
    wait_until(lambda: _cases_in(spool) == 8, STARTS_WITHIN)
    process.kill()
    process.wait()
    assert _cases_in(spool) == 8
    assert not (project.path / "reports/latest/results.json").exists()  # nothing of the run before passes for this one
    next_run = project.run("-k", "N1")
    next_run.assert_outcomes(passed=1, deselected=8)
    assert list(project.results()) == ["N1"]
    next_run.stdout.fnmatch_lines(
        ["The run before was killed: 8 cases done, 1 without a result. 'memstory report *killed' writes its report."]
    )


@pytest.mark.parametrize(
    # An unknown tag is a mistake of the command line from pytest 9.1 on, and selects nothing before.
    ("arguments", "codes"),
    [(["-m", "no_such_tag"], (4, 5)), (["broken.py", "stories"], (2,)), (["--collect-only"], (0,))],
)
def test_a_run_that_ends_with_its_collection_leaves_the_report_before_it(project, arguments, codes):
    project.story(MANY)
    (project.path / "broken.py").write_text("import a_module_that_is_not_there")
    project.run("-k", "N1")
    assert project.run(*arguments).ret in codes
    assert project.results() == {"N1": "passed"}


def test_the_same_run_twice_gives_the_same_results_but_for_the_time(project):
    # H-09
    def timeless(value):
        if isinstance(value, dict):
            return {
                name: timeless(inner)
                for name, inner in value.items()
                if name not in {"seconds", "embedding_seconds", "started"}
            }
        return [timeless(inner) for inner in value] if isinstance(value, list) else value

    documents = []
    project.story(MANY)
    for _ in range(2):
        project.run()
        documents.append(timeless(json.loads((project.path / "reports/latest/results.json").read_text("utf-8"))))
    assert documents[0] == documents[1]


def test_a_report_folder_that_cannot_be_is_a_usage_error(project):
    project.story()
    (project.path / "taken").write_text("a file")
    result = project.run("--report", "taken")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*reports cannot be written to *taken*--report*"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "refrence"], "*unknown target 'refrence'. Did you mean 'reference'?*"),
        (["--target", "toy_target:Nope"], "*'toy_target' has no 'Nope'*"),
        (["--target-option", "kk=1"], "*no option 'kk'*Did you mean 'k'?*"),
        (["--embedder", "x"], "*no option 'embedder'*Known: chat, k.*"),
        (["--target-option", "k"], "*'k' is not NAME=VALUE*"),
        (["--trials", "0"], "*'0' is not a whole number of 1 or more*"),
        (["--case-timeout", "nan"], "*'nan' is not a number above 0*"),
    ],
)
def test_what_was_typed_wrong_is_one_line_and_exit_4(project, arguments, message):
    project.story()
    result = project.run(*arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])
    assert "Traceback" not in result.stderr.str()


def test_options_reach_the_target_that_has_them_as_json_or_text(project):
    project.story("story: O1\ntitle: t\nsteps: [{add: x}]\n")
    project.pytester.makepyfile(
        showing="""
        from toy_target import Toy, ToyFactory

        class Showing(Toy):
            async def open(self, env, clock):
                with open("options.txt", "w") as file:
                    file.write(repr(dict(env.options)))
                await super().open(env, clock)

        class Factory(ToyFactory):
            def target(self):
                return Showing()
        """
    )
    arguments = ["--target-option", "k=5", "--chat", "ollama:x", "--target", "showing:Factory"]
    project.run(*arguments, "--target", "control:oracle").assert_outcomes(passed=2)
    assert (project.path / "options.txt").read_text() == "{'k': 5, 'chat': 'ollama:x'}"


def test_a_conftest_may_offer_targets_by_name(project):
    project.story()
    project.pytester.makeconftest(
        "def pytest_memstory_targets(config): return {'mine': 'memstory.controls:OracleFactory'}"
    )
    result = project.run("--target", "mine", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*G1[[]mine[]] PASSED*"])


def test_a_verbose_run_tells_how_far_a_retrieval_is(project):
    rows = [{"id": f"d{number}", "text": f"fact {number}"} for number in range(3)]
    (project.path / "stories/facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    query = {"id": "q", "text": "fact 1", "relevant": ["d1"]}
    (project.path / "stories/queries.jsonl").write_text(json.dumps(query) + "\n")
    project.story(
        "story: Q1\ntitle: t\nretrieval: {corpus: facts.jsonl, queries: queries.jsonl, k: 3}\n"
        "expect: {metrics: {mrr: {ge: 0.5}}}\n"
    )
    result = project.run_apart("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["  Q1* 1/1 *3 documents, 1 question*"])


def test_a_service_that_shows_a_summary_gets_the_first_screen(project, monkeypatch, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    project.story()
    project.run()
    lines = summary.read_text().split("\n")
    assert lines[0] == "before"
    assert lines[1].startswith("# memstory: ")


def test_a_summary_that_no_service_takes_costs_no_report(project, monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere/summary.md"))
    project.story()
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "toy*1 passed*",
            "memstory: 1 passed, 0 failed",
            "GITHUB_STEP_SUMMARY: nothing was written to *: No such file or directory",
        ]
    )


def test_junit_has_the_file_the_line_and_what_a_case_is_of(project):
    project.story("story: J1\ntitle: t\nharm: leak\nsteps: [{add: x}]\n")
    project.run("--junitxml", "j.xml", "-o", "junit_family=xunit1")
    text = (project.path / "j.xml").read_text()
    assert 'file="stories/a.yaml" line="0"' in text
    for name, value in {"story": "J1", "file": "stories/a.yaml", "line": "1", "harm": "leak"}.items():
        assert f'<property name="{name}" value="{value}"' in text


@pytest.mark.parametrize("name", ["stories/test_after.py", "test_before.py"])
def test_a_copy_of_pytest_that_a_test_left_behind_writes_no_report(project, name):
    project.story()
    # The copy goes on as a second pytest, and comes to its end first.
    (project.path / name).write_text(
        "import os, time\n\ndef test_forks():\n    if os.fork():\n        os.wait()\n", encoding="utf-8"
    )
    result = project.run_apart("stories", ".")
    assert result.ret == 0
    assert result.stdout.str().count("memstory: 1 passed") == 1
    assert project.results() == {"G1": "passed"}
