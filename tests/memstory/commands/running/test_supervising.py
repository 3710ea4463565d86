"""`memstory run` waits for pytest, hands signals on, and says what was lost. Real processes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

TARGET = """
import asyncio
import os
from memstory.contract.target import Receipt, ReceiptItem, Target, TargetFactory

class Toy(Target):
    async def open(self, env, clock): pass
    async def close(self): pass
    async def add(self, items, scope):
        if items[0].text == "leave":
            os._exit(0)
        if items[0].text == "wait":
            print("waiting", flush=True)
            await asyncio.sleep(600)
        return Receipt(items=[ReceiptItem(id="1", text=items[0].text)])

class ToyFactory(TargetFactory):
    name = "toy"
    def capabilities(self, options): return frozenset({"add"})
    def target(self): return Toy()
"""
MEMSTORY = ("-c", "import sys; from memstory.cli import main; sys.exit(main())", "run")
PYTEST = ("-m", "pytest")
STORIES = """
story: W1
title: one
steps: [{{add: tea}}]
---
story: W2
title: two
steps: [{{add: {deed}}}]
---
story: W3
title: three
steps: [{{add: tea}}]
"""


@pytest.fixture
def begin(tmp_path):
    """Start pytest or `memstory run` on three stories, of which the second does what it is asked for."""
    started = []

    def begun(*command, deed):
        (tmp_path / "toy.py").write_text(TARGET, "utf-8")
        (tmp_path / "w.story.yaml").write_text(STORIES.format(deed=deed), "utf-8")
        (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
        words = [sys.executable, *command, "w.story.yaml", "--target", "toy:ToyFactory", "-s"]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        run = subprocess.Popen(  # noqa: S603  (our own words)
            words,
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(run)
        return run

    yield begun
    for run in started:
        run.kill()
        run.wait()
        run.stdout.close()


@pytest.fixture
def results(tmp_path):
    def read():
        document = json.loads((tmp_path / "reports/latest/results.json").read_text("utf-8"))
        return document["complete"], {case["story"]: (case["outcome"], case["reason"]) for case in document["cases"]}

    return read


def hear(run, word):
    end = time.monotonic() + 60
    for line in run.stdout:
        if word in line:
            return
        assert time.monotonic() < end, f"'{word}' was not said"
    pytest.fail(f"the run ended without a word of '{word}'")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_is_handed_on_and_the_report_says_interrupted(begin, results, number):
    run = begin(*MEMSTORY, deed="wait")
    hear(run, "waiting")
    run.send_signal(number)
    said = run.stdout.read()
    assert run.wait(60) == 2
    assert "interrupted" in said
    complete, cases = results()
    assert not complete
    assert [outcome for outcome, _ in cases.values()] == ["passed", "error", "error"]
    assert "interrupted" in cases["W2"][1]


@pytest.mark.repeats
def test_a_second_interrupt_still_leaves_every_case_in_the_report(begin, results):
    run = begin(*MEMSTORY, deed="wait")
    hear(run, "waiting")
    run.send_signal(signal.SIGINT)
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    said = run.stdout.read()
    assert (run.wait(60), "Traceback" in said, "The run was interrupted" in said) == (2, False, True), said
    complete, cases = results()
    assert not complete
    assert {story: outcome for story, (outcome, _) in cases.items()} == {"W1": "passed", "W2": "error", "W3": "error"}


def test_a_target_that_ends_the_process_costs_no_case_and_not_the_exit_code(begin, results):
    run = begin(*MEMSTORY, deed="leave")
    said = run.stdout.read()
    assert run.wait(60) == 3
    assert "W2[toy" in said
    complete, cases = results()
    assert not complete
    assert {story: outcome for story, (outcome, _) in cases.items()} == {"W1": "passed", "W2": "error", "W3": "error"}


def test_plain_pytest_does_not_end_with_0_when_a_target_does(begin):
    run = begin(*PYTEST, deed="leave")
    run.stdout.read()
    assert run.wait(60) == 3
