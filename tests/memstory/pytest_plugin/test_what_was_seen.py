"""A leak that was seen counts, however the target goes on: in the outcome, the harm, the exit code and the gate."""

import json

import pytest

from memstory.cli import main

pytest_plugins = ["pytester"]

LEAKY = """
import asyncio, os
from memstory.controls import Oracle, OracleFactory
from memstory.contract.errors import NotSupported, TargetError
from memstory.contract.target import Hit

HIT = Hit(id="1", text="Ana's sister is Ines", score=1.0)


class Sound(Oracle):
    async def search(self, query, scope):
        return []


class Leaky(Oracle):
    async def search(self, query, scope):
        return [HIT]

    async def list(self, *_, **__):
        match os.environ["LEAKY_HOW"]:
            case "declines": raise NotSupported("list")
            case "declines in other words": raise NotSupported("paging", "no pages here")
            case "breaks": raise RuntimeError("connection reset")
            case "hangs": await asyncio.Event().wait()
            case "exits": os._exit(1)
            case "stops the loop": await self.stop()
            case "exits in a task": await self.bomb()
            case "cancels all": await self.cancel_all()
            case "declines once" if self._seed == 1: raise NotSupported("paging", "no pages here")
        return []


    async def stop(self):
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.2)

    async def bomb(self):
        async def leave():
            raise SystemExit(0)

        asyncio.create_task(leave())
        await asyncio.sleep(0.2)

    async def cancel_all(self):
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0.2)


class SoundFactory(OracleFactory):
    spec = "leaky:SoundFactory"
    def target(self):
        return Sound()


class LeakyFactory(OracleFactory):
    spec = "leaky:LeakyFactory"
    def target(self):
        return Leaky()
"""

HIDE = """
story: hide
title: What Ana said stays with her
harm: leak
steps:
  - search: Who is Ana's sister?
    as: ben
    expect: {hits: {empty: true}}
  - list:
    as: ben
"""
HOLDS = HIDE.replace("    expect: {hits: {empty: true}}\n", "").replace("hide", "holds")


@pytest.fixture
def case(project, monkeypatch):
    """Return a function: how the target goes on, and words for pytest, to the reported case and pytest's result."""
    project.pytester.makepyfile(leaky=LEAKY)

    def run(how, *words, story=HIDE, target="leaky:LeakyFactory", folder="reports/latest"):
        monkeypatch.setenv("LEAKY_HOW", how)
        project.story(story)
        result = project.run_apart("--target", target, "--report", folder, "--case-timeout", "10", *words)
        document = json.loads((project.path / folder / "results.json").read_text("utf-8"))
        return document["cases"][0], result

    return run


ENDS = [
    ("declines", (), "then the target broke off: step 2 (list): the target declares 'list', and says that it does not"),
    ("declines in other words", (), "then the target could not go on: step 2 (list): no pages here"),
    ("breaks", (), "then the target broke off: step 2 (list): RuntimeError: connection reset"),
    ("breaks", ("--isolate",), "then the target broke off: step 2 (list): RuntimeError: connection reset"),
    ("hangs", (), "then the target broke off: step 2 (list): timed out after 10 s"),
    ("stops the loop", (), "then the target broke off: step 2 (list): RuntimeError: Event loop stopped"),
    ("exits in a task", (), "then the target broke off: step 2 (list): the target raised SystemExit"),
    ("cancels all", (), "then the target broke off: step 2 (list): the target raised CancelledError"),
    ("cancels all", ("--trials", "2"), "0 of 2 trials passed, 2 needed, 1 broke; first miss: stories/a.yaml:7:21"),
    ("exits", ("--isolate",), "then the target broke off: step 2 (list): the target's process ended"),
    ("declines", ("--isolate",), "then the target broke off: step 2 (list): the target declares 'list'"),
    ("declines once", ("--trials", "3"), "0 of 3 trials passed, 3 needed; first miss: stories/a.yaml:7:21 step 1"),
]


@pytest.mark.parametrize(("how", "words", "then"), ENDS)
def test_a_leak_that_was_seen_fails_its_case_however_the_target_goes_on(case, how, words, then):
    found, result = case(how, *words)
    assert (found["outcome"], found["harm"]) == ("failed", "leak")
    assert "step 1 (search): hits " in found["reason"]
    assert then in found["reason"]
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    (told,) = (line for line in result.outlines if line.startswith(("stories/a.yaml:7:21: ", "stories/a.yaml:1:1: ")))
    assert "hits are 1, expected none" in told
    assert then[:40] in told


@pytest.mark.parametrize("words", [(), ("--isolate",)])
def test_a_target_that_declines_what_it_declares_is_an_error_that_says_so(case, words):
    found, result = case("declines", *words, story=HOLDS)
    assert found["outcome"] == "error"
    assert "step 2 (list): the target declares 'list', and says that it does not support it" in found["reason"]
    assert result.ret == 1


def test_a_target_that_declines_what_it_does_not_declare_is_unsupported(case):
    found, _ = case("declines in other words", story=HOLDS)
    assert (found["outcome"], found["reason"]) == ("unsupported", "stories/a.yaml:7:5 step 2 (list): no pages here")


@pytest.mark.parametrize("how", ["declines", "declines in other words", "breaks"])
def test_a_leak_before_the_target_broke_off_is_a_regression(case, project, monkeypatch, capsys, how):
    case("", target="leaky:SoundFactory", folder="before")
    results = project.path / "before/results.json"
    results.write_text(results.read_text("utf-8").replace("SoundFactory", "LeakyFactory"), "utf-8")
    case(how, folder="now")
    monkeypatch.chdir(project.path)
    assert main(["gate", "before", "--baseline", "base.json", "--update"]) == 0
    assert main(["gate", "now", "--baseline", "base.json"]) == 1
    assert "regression: hide[leaky:LeakyFactory]: passed, now failed: " in capsys.readouterr().out


def test_the_report_says_how_a_failed_case_went_on(case, project):
    case("breaks")
    report = (project.path / "reports/latest/report.md").read_text("utf-8")
    assert "1 leak (1 cause)" in report
    assert "Then it ended in step 2: error: RuntimeError: connection reset" in report


LEAVING = """
import asyncio
from memstory.controls import Oracle, OracleFactory

class Leaving(Oracle):
    async def search(self, query, scope):
        self.task = asyncio.create_task(self.write())
        return []

    async def write(self):
        raise OSError("disk full")

class LeavingFactory(OracleFactory):
    spec = "leaving:LeavingFactory"
    def target(self):
        return Leaving()
"""


@pytest.mark.parametrize("words", [(), ("--isolate",), ("-n", "1")])
def test_an_exception_in_a_task_that_was_left_behind_is_a_warning_of_its_case(case, project, words):
    project.pytester.makepyfile(leaving=LEAVING)
    found, result = case("", *words, target="leaving:LeavingFactory")
    assert (found["outcome"], result.ret) == ("passed", 0)
    assert found["warnings"] == ["the target left a task behind that broke, write: OSError: disk full"]
    report = (project.path / "reports/latest/report.md").read_text("utf-8")
    assert "## Warnings\n\n- the target left a task behind that broke, write: OSError: disk full" in report
