"""What another plugin runs again is flaky, with its first failure: nothing is run again in silence."""

import json

import pytest

from memstory.cli import main

pytest_plugins = ["pytester"]

# As pytest-rerunfailures and flaky do: the whole protocol again, while it fails, and only the last report counts.
RERUNS = """
import pytest
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for left in (2, 1, 0):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if left == 0 or not any(report.failed for report in reports):
            break
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""

MOODY = """
from memstory.controls import Oracle, OracleFactory

class Moody(Oracle):
    searched = 0

    async def search(self, query, scope):
        Moody.searched += 1
        mood = (MOODS[Moody.searched - 1 :] or "p")[0]
        if mood == "e":
            raise RuntimeError("connection reset")
        return () if mood == "f" else await super().search(query, scope)

class MoodyFactory(OracleFactory):
    spec = None
    def target(self):
        return Moody()

MOODS = ""
"""

STORY = """
story: T1
title: A fact is found
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
"""


@pytest.fixture
def case(project):
    """Return a function: how each run of the story ends, to its reported case and pytest's result."""

    def run(moods, *words, folder="reports/latest"):
        project.pytester.makepyfile(moody=MOODY.replace('MOODS = ""', f'MOODS = "{moods}"'), reruns=RERUNS)
        project.story(STORY)
        result = project.run_apart("-p", "reruns", "--target", "moody:MoodyFactory", "--report", folder, *words)
        document = json.loads((project.path / folder / "results.json").read_text("utf-8"))
        return document["cases"][0], result

    return run


FIRST = "stories/a.yaml:6:21 step 2 (search): hits count 0, expected 1; the hits are: no hits"
BROKE = "stories/a.yaml:5:5 step 2 (search): RuntimeError: connection reset"


@pytest.mark.parametrize(
    ("moods", "outcome", "reason", "trials"),
    [
        ("p", "passed", None, ["passed"]),
        ("fp", "failed", f"flaky: failed first, passed when run again: {FIRST}", ["failed", "passed", "passed"]),
        ("fff", "failed", FIRST, ["failed", "failed", "failed"]),
        ("ep", "error", f"flaky: error first, passed when run again: {BROKE}", ["error", "passed", "passed"]),
        ("ef", "failed", f"flaky: error first, failed when run again: {FIRST}", ["error", "failed", "passed"]),
    ],
)
def test_a_case_that_was_run_again_ends_as_its_worst_run_and_says_so(case, moods, outcome, reason, trials):
    found, result = case(moods)
    assert (found["outcome"], found.get("reason")) == (outcome, reason)
    assert [trial["outcome"] for trial in found["trials"]] == trials
    assert result.ret == (0 if outcome == "passed" else 1)


def test_workers_tell_it_too(case):
    found, result = case("fp", "-n", "1")
    assert found["reason"] == f"flaky: failed first, passed when run again: {FIRST}"
    assert result.ret == 1


def test_the_same_case_named_twice_is_two_runs_of_it(case):
    found, result = case("pf", "-p", "no:reruns", "--keep-duplicates", "stories/a.yaml", "stories/a.yaml")
    assert found["reason"] == f"flaky: passed first, failed when run again: {FIRST}"
    assert result.ret == 1


def test_the_report_and_the_terminal_call_it_flaky(case, project):
    _, result = case("fp")
    result.stdout.fnmatch_lines(["*flaky: failed first, passed when run again: *", "flaky: T1* passed 2 of 3 trials*"])
    report = (project.path / "reports/latest/report.md").read_text("utf-8")
    assert "❌ failed, **flaky** | 2 of 3 |" in report
    assert "trial 1" in report


def test_the_gate_and_a_second_judgement_know_it(case, project, monkeypatch, capsys):
    case("", folder="before")
    found, _ = case("fp", folder="now")
    monkeypatch.chdir(project.path)
    assert main(["gate", "before", "--baseline", "base.json", "--update"]) == 0
    capsys.readouterr()
    assert main(["gate", "now", "--baseline", "base.json"]) == 1
    said = capsys.readouterr().out
    assert f"regression: T1[moody:MoodyFactory]: passed, now failed: {found['reason']}" in said
    assert main(["rejudge", "now", "stories"]) == 0
    assert main(["show", "now", "T1", "--trial", "3"]) == 0
    assert "trial 3 of 3: passed, seed 0" in capsys.readouterr().out
