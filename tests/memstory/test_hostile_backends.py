"""Backends that do everything wrong that a backend can: the case says so legibly, and the others go on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from memstory_tests_waiting import wait_until

from memstory.contract.clock import StoryClock
from memstory.contract.errors import TargetError
from memstory.contract.target import Environment, Item, Request, Scope, Target
from memstory.language.stories import load_stories
from memstory.playing import play
from memstory.results.folder.results_file import results_text
from memstory.results.folder.spool import Spool
from memstory.results.runs import make_fingerprint, make_run
from memstory.running import stage
from memstory.running.hosting.host import HostedTarget
from memstory.running.runner import RunOptions

pytest_plugins = ["pytester"]

BACKEND = """
import asyncio, os, subprocess, sys, threading, time
from math import inf, nan
from memstory.controls import Oracle
from memstory.contract.target import Hit, Receipt, TargetFactory


class Panic(BaseException):
    pass


class Unsayable(Exception):
    def __str__(self):
        raise ValueError("no message")


RAISED = {
    "exit": SystemExit(3),
    "panic": Panic("index out of range"),
    "cancelled": asyncio.CancelledError(),
    "huge": RuntimeError("x" * 1_000_000),
    "not utf-8": RuntimeError("caf\\udce9 \\x00\\x1b[31m"),
    "unsayable": Unsayable(),
    "group": ExceptionGroup("many", [ValueError("first"), ExceptionGroup("more", [OSError("second")])]),
    "key": KeyError("id"),
    "stop": StopAsyncIteration(),
    "recursion": RecursionError("too deep"),
}


class Hostile(Oracle):
    async def open(self, env, clock):
        self.how = env.options.get("how")
        if self.how == "slow to open":
            await asyncio.sleep(0.5)
        if self.how == "hangs in open":
            await asyncio.Event().wait()
        if self.how == "noisy":
            print('{"id": 0, "value": null}', flush=True)
            os.write(1, b"\\xff\\xfe noise \\n" * 1000)
        await super().open(env, clock)

    async def close(self):
        await super().close()
        if self.how == "hangs in close":
            await asyncio.Event().wait()
        if self.how == "raises in close":
            raise RuntimeError("cannot flush")
        if self.how == "exits in close":
            sys.exit(4)

    async def add(self, items, scope):
        receipt = await super().add(items, scope)
        match self.how:
            case "hangs in add":
                await asyncio.Event().wait()
            case "blocks in add":
                time.sleep(3600)
            case "dies":
                print("last words", flush=True)
                os._exit(7)
            case "aborts":
                os.abort()
            case "grandchild dies":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                with open("grandchild.pid", "w") as file:
                    file.write(str(child.pid))
                os._exit(7)
            case "no receipt":
                return None
            case "receipt of words":
                return "ok"
            case "receipt of holes":
                return Receipt(items=[None])
        return receipt

    async def settle(self):
        if self.how == "hangs in settle":
            await asyncio.Event().wait()

    async def search(self, query, scope):
        if self.how in RAISED:
            raise RAISED[self.how]
        hits = list(await super().search(query, scope))
        match self.how:
            case "hangs in search":
                await asyncio.Event().wait()
            case "none":
                return None
            case "dict":
                return [{"id": hit.id, "text": hit.text} for hit in hits]
            case "no text":
                return [Hit(id="1", text=None)]
            case "score of words":
                return [Hit(id=hit.id, text=hit.text, score="near") for hit in hits]
            case "objects":
                return [Hit(id=hit.id, text=hit.text, metadata={"at": object()}) for hit in hits]
            case "circle":
                circle = {}
                circle["me"] = circle
                return [Hit(id=hit.id, text=hit.text, metadata=circle) for hit in hits]
            case "too many":
                return hits + [Hit(id=f"x{number}", text=f"extra {number}") for number in range(50)]
            case "twice":
                return hits + hits
            case "nan":
                return [Hit(id=hit.id, text=hit.text, score=nan) for hit in hits]
            case "inf":
                return [Hit(id=hit.id, text=hit.text, score=inf) for hit in hits]
            case "nothing":
                return []
            case "endless":
                return (hit for hit in iter(lambda: hits[0], None))
            case "everybody's":
                return hits + [Hit(id="b1", text="Bob keeps a parrot")]
            case "surrogates":
                return [Hit(id=hit.id, text=hit.text + "\\udcff\\x00", score=hit.score) for hit in hits]
        return hits


class HostileFactory(TargetFactory):
    name, spec = "hostile", "hostile_backend:HostileFactory"

    def capabilities(self, options):
        return frozenset("add search search.scores scope.user option.how".split())

    def target(self):
        return Hostile()


class ForkedFactory(HostileFactory):
    spec, preload = "hostile_backend:ForkedFactory", ("memstory.controls",)
"""

STORY = """\
story: H1
title: What was told is found, once, and nobody else's
steps:
  - add: {text: Ana drinks green tea}
    save: {tea: id}
  - search: {query: what does Ana drink, top_k: 3}
    expect: {hits: {first: tea, count: 1, scores: {tea: {ge: 0, le: 1}}, text: {not: {contains: Bob}}}}
"""

JUDGED_WRONG = {
    "nothing": "the hits are: no hits",
    "too many": "hits count 51",
    "twice": "hits count 2",
    "nan": "a score that is NaN",
    "inf": "a score that is Infinity",
    "everybody's": "2. 'Bob keeps a parrot'",
}
MALFORMED = {
    "no receipt": "'add' of the target returned a malformed answer: it is None, not a Receipt",
    "receipt of words": "it is a str ('ok'), not a Receipt",
    "receipt of holes": "it.items[0] is None, not a ReceiptItem",
    "none": "'search' of the target returned a malformed answer: it is None, not a list",
    "dict": "it[0] is a dict (",
    "no text": "it[0].text is None, not a text",
    "score of words": "it[0].score is a str ('near'), not a number",
    "objects": "object is not JSON",
    "circle": "RecursionError",
    "endless": "it is a generator (",
}
RAISED = {
    "exit": "the target raised SystemExit: 3",
    "panic": "the target raised Panic: index out of range",
    "cancelled": "the target raised CancelledError",
    "huge": "RuntimeError: xxx",
    "not utf-8": "RuntimeError: caf",
    "unsayable": "Unsayable: (no message: it raises ValueError when it is asked for)",
    "group": "ValueError: first; OSError: second",
    "key": "KeyError: 'id'",
    "stop": "StopAsyncIteration",
    "recursion": "RecursionError: too deep",
}
STUCK = {
    "hangs in open": "opening the target",
    "hangs in add": "step 1",
    "hangs in settle": "step 1",
    "hangs in search": "step 2",
}


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Return a function that runs the story on the backend in one of its moods, and gives result and judgement."""
    (tmp_path / "hostile_backend.py").write_text(BACKEND)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "hostile_backend", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.story.yaml").write_text(STORY)
    (story,) = load_stories(tmp_path / "h.story.yaml", "h.story.yaml")

    async def go(how, *, hosted, seconds=60.0):
        from hostile_backend import ForkedFactory, HostileFactory  # noqa: PLC0415  (written a moment ago)

        factory = ForkedFactory() if hosted == "forked" else HostileFactory()
        work = tmp_path / f"work-{how.replace(' ', '-')}-{hosted}-{seconds:g}"
        options = RunOptions(target={"how": how}, case_seconds=seconds, hosted=bool(hosted))
        return await play(story, factory, work, target="hostile", options=options)

    return go


def written(tmp_path, result):
    """Return a result as reports have it, through the spool: whatever a backend says has to survive that."""
    Spool(tmp_path).append(result)
    (read,) = Spool(tmp_path).read()
    assert read.reason == result.reason
    return json.loads(results_text(make_run([read], make_fingerprint([read]))))


@pytest.mark.parametrize("hosted", [False, True])
async def test_a_friendly_mood_passes(judge, hosted):
    assert (await judge("friendly", hosted=hosted)).outcome == "passed"


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("how", ["slow to open", "noisy", "surrogates"])
async def test_what_is_only_odd_is_no_fault(judge, tmp_path, how, hosted):
    result = await judge(how, hosted=hosted)
    assert (result.outcome, result.reason) == ("passed", None)
    written(tmp_path, result)


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("how", JUDGED_WRONG)
async def test_a_wrong_answer_is_failed_with_what_is_wrong(judge, tmp_path, how, hosted):
    result = await judge(how, hosted=hosted)
    assert result.outcome == "failed"
    assert JUDGED_WRONG[how] in result.reason
    assert written(tmp_path, result)["summary"]["failed"] == 1


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("how", [*MALFORMED, *RAISED])
async def test_a_malformed_answer_and_an_odd_error_are_errors_in_plain_words(judge, tmp_path, how, hosted):
    result = await judge(how, hosted=hosted)
    assert result.outcome == "error"
    assert {**MALFORMED, **RAISED}[how] in result.reason
    assert len(result.reason) < 5_000
    assert len(result.trials[0].recording.failure.detail) < 50_000
    written(tmp_path, result)
    if not hosted:
        assert (await judge("friendly", hosted=False)).outcome == "passed"


async def cut_off(judge, how, place, *, hosted):
    """Return the result of a story that is cut off at `place`; a busy machine needs more time to come so far."""
    for seconds in (2, 10, 60):
        result = await judge(how, hosted=hosted, seconds=float(seconds))
        if f"timed out after {seconds} s in {place}" in result.reason:
            return result
    pytest.fail(f"never cut off in {place}: {result.reason}")


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("how", STUCK)
async def test_what_hangs_is_cut_off_where_it_hangs(judge, how, hosted):
    result = await cut_off(judge, how, STUCK[how], hosted=hosted)
    assert result.outcome == "error"


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("hangs in close", "the target did not close within 0.5 s"),
        ("raises in close", "RuntimeError: cannot flush"),
        ("exits in close", "the target raised SystemExit: 4"),
    ],
)
async def test_a_target_that_does_not_close_is_an_error_although_all_was_right(judge, monkeypatch, how, said, hosted):
    monkeypatch.setattr(stage, "CLOSING_SECONDS", 0.5)
    result = await judge(how, hosted=hosted)
    assert (result.outcome, said in result.reason) == ("error", True), result.reason


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("dies", "the target's process ended with exit code 7; it last printed: last words"),
        ("aborts", "the target's process ended by signal 6 (Aborted)"),
    ],
)
@pytest.mark.parametrize("hosted", ["cold", "forked"])
async def test_a_process_that_dies_is_an_error_with_its_last_words(judge, how, said, hosted):
    result = await judge(how, hosted=hosted)
    assert (result.outcome, said in result.reason) == ("error", True), result.reason
    assert (await judge("friendly", hosted=hosted)).outcome == "passed"


@pytest.mark.parametrize("hosted", ["cold", "forked"])
async def test_a_process_that_blocks_is_an_error(judge, monkeypatch, hosted):
    monkeypatch.setattr(stage, "CLOSING_SECONDS", 0.5)
    result = await cut_off(judge, "blocks in add", "step 1", hosted=hosted)
    assert result.outcome == "error"
    assert (await judge("friendly", hosted=hosted)).outcome == "passed"


@pytest.mark.parametrize("hosted", ["cold", "forked"])
async def test_what_a_dead_backend_has_started_ends_with_it(judge, tmp_path, hosted):
    assert (await judge("grandchild dies", hosted=hosted)).outcome == "error"
    child = int((tmp_path / "grandchild.pid").read_text())
    wait_until(lambda: not is_running(child))


@pytest.mark.usefixtures("judge")
async def test_an_answer_longer_than_a_line_may_be_is_told(tmp_path, monkeypatch):
    from hostile_backend import HostileFactory  # noqa: PLC0415  (written a moment ago)

    monkeypatch.setattr("memstory.running.hosting.host.LONGEST_LINE", 1 << 12)
    hosted = HostedTarget(HostileFactory(), tmp_path / "host")
    await hosted.open(Environment(workspace=str(tmp_path), owner="ann"), StoryClock())
    with pytest.raises(TargetError, match="the target's process sent what is not an answer"):
        await hosted.perform(Request.of(Target.add, [Item(text="tea " * 4_000)], Scope(user="ann")))
    await hosted.close()


RUN = """
import asyncio, sys
from pathlib import Path
from hostile_backend import HostileFactory
from memstory.contract.clock import StoryClock
from memstory.running.hosting.host import HostedTarget
from memstory.contract.target import Environment, Item, Request, Scope, Target

async def main():
    target = HostedTarget(HostileFactory(), Path("host"))
    await target.open(Environment(workspace="work", owner="ann", options={"how": "blocks in add"}), StoryClock())
    print(target._process.pid, flush=True)
    await target.perform(Request.of(Target.add, [Item(text="tea")], Scope(user="ann")))

Path("work").mkdir()
asyncio.run(main())
"""


@pytest.mark.slow
def test_a_blocked_child_does_not_outlive_a_parent_that_was_killed(tmp_path):
    (tmp_path / "hostile_backend.py").write_text(BACKEND)
    parent = subprocess.Popen(  # noqa: S603  (the script above)
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
    )
    with parent:
        child = int(parent.stdout.readline())
        time.sleep(1)
        parent.kill()
    assert is_running(child)
    wait_until(lambda: not is_running(child), seconds=40)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


FACTORIES = """
import asyncio, sys, time
from hostile_backend import HostileFactory


class NeverStarts(HostileFactory):
    async def start(self, folder):
        await asyncio.Event().wait()


class ExitsAtStart(HostileFactory):
    async def start(self, folder):
        sys.exit(5)


class NeverStops(HostileFactory):
    async def stop(self):
        time.sleep(3600)


class FailsToStop(HostileFactory):
    async def stop(self):
        raise RuntimeError("the server does not answer")


class Stuck(HostileFactory):
    def target(self):
        made = super().target()
        made.search = self.search
        return made

    async def search(self, query, scope):
        return await asyncio.to_thread(time.sleep, 3600)
"""


@pytest.fixture
def project(pytester):
    """Return a function that runs the story by pytest, in its own process, on factories of a hostile project."""
    pytester.makepyfile(hostile_backend=BACKEND, hostile_factories=textwrap.dedent(FACTORIES))
    (pytester.path / "h.story.yaml").write_text(STORY)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    quick = "import memstory.pytest_plugin.worker as worker\nworker.START_SECONDS = worker.STOP_SECONDS = 1.0\n"
    pytester.makeconftest(quick + "worker._PATIENCE_SECONDS = 0.5\n")

    def go(*factories, arguments=(), seconds=10):
        targets = [word for name in factories for word in ("--target", name)]
        return pytester.runpytest_subprocess(
            "-p", "no:cacheprovider", *targets, "--case-timeout", str(seconds), *arguments, timeout=120
        )

    return go


def outcomes(folder):
    document = json.loads((folder / "reports/latest/results.json").read_text())
    return {case["target"].partition(":")[2]: (case["outcome"], case["reason"]) for case in document["cases"]}


def test_a_factory_that_does_not_start_costs_its_own_cases_only(project, pytester):
    names = [f"hostile_factories:{name}" for name in ("NeverStarts", "ExitsAtStart")]
    project(*names, "hostile_backend:HostileFactory")
    found = outcomes(pytester.path)
    assert found["HostileFactory"] == ("passed", None)
    assert found["NeverStarts"][0] == found["ExitsAtStart"][0] == "error"
    assert "it took more than 1 s" in found["NeverStarts"][1]
    assert "the target raised SystemExit: 5" in found["ExitsAtStart"][1]


def test_a_factory_that_does_not_stop_costs_no_report_and_is_told(project, pytester):
    result = project("hostile_factories:NeverStops", "hostile_factories:FailsToStop")
    assert set(outcomes(pytester.path).values()) == {("passed", None)}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = result.stdout.str()
    assert "did not stop: hostile_factories:NeverStops: the target blocked the whole process for 1.5 s" in said
    assert "did not stop: hostile_factories:FailsToStop: RuntimeError: the server does not answer" in said


def test_a_call_that_blocks_the_process_is_interrupted_and_the_others_go_on(project, pytester):
    result = project("hostile_backend:HostileFactory", arguments=["--target-option", "how=blocks in add"], seconds=5)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcome, reason = outcomes(pytester.path)["HostileFactory"]
    assert (outcome, "the target blocked the whole process for 5.5 s; --isolate" in reason) == ("error", True), reason


@pytest.mark.slow
def test_a_thread_that_never_ends_does_not_keep_the_run_from_ending(project, pytester):
    begun = time.monotonic()
    result = project("hostile_factories:Stuck")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(pytester.path)["Stuck"][0] == "error"
    assert time.monotonic() - begun < 100


def test_isolated_cases_survive_a_backend_that_ends_its_process(project, pytester):
    (pytester.path / "h.story.yaml").write_text(
        STORY.replace("title:", "options: {how: dies}\ntitle:") + "---\n" + STORY.replace("H1", "H2")
    )
    project("hostile_backend:HostileFactory", arguments=["--isolate"], seconds=60)
    document = json.loads((pytester.path / "reports/latest/results.json").read_text())
    assert [(case["story"], case["outcome"]) for case in document["cases"]] == [("H1", "error"), ("H2", "passed")]


@pytest.mark.usefixtures("judge")
async def test_of_users_at_once_the_one_that_breaks_is_told_and_nobody_hangs(tmp_path):
    text = STORY.replace("  - search", "  - parallel: {times: 3, steps: [{search: x}]}\n  - search")
    (tmp_path / "h.story.yaml").write_text(text)
    (story,) = load_stories(tmp_path / "h.story.yaml", "h.story.yaml")
    from hostile_backend import HostileFactory  # noqa: PLC0415  (written a moment ago)

    for how in ("exit", "panic", "cancelled"):
        async with asyncio.timeout(30):
            options = RunOptions(target={"how": how})
            result = await play(story, HostileFactory(), tmp_path / how, target="hostile", options=options)
        assert result.outcome == "error"
        assert RAISED[how] in result.reason
