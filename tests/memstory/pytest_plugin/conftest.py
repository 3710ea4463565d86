"""A project with stories, for pytest to run inside a test."""

from __future__ import annotations

import json

import jinja2  # noqa: F401  (as below)
import jsonschema  # noqa: F401  (as below)
import pytest

import memstory.pytest_plugin.collect  # noqa: F401  (pytester forgets what an inner run imports: this keeps it quick)

TOY = """
import asyncio, os, signal
from pathlib import Path
from memstory.controls import Oracle
from memstory.contract.errors import Refused, SetupError
from memstory.contract.target import TargetFactory, ToolCall, Turn


class Toy(Oracle):
    async def say(self, text, scope):
        if text == "break":
            raise RuntimeError("the backend fell over")
        if text == "hang":
            Path("hangs").touch()
            await asyncio.Event().wait()
        if text == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        calls = [ToolCall(name="recall", args={"topic": "user.name"}, result="[Memory: user.name] Ana")]
        return Turn(answer=f"You said {text}\\x1b[2J", tool_calls=calls)


class ToyFactory(TargetFactory):
    name, spec = "toy", "toy_target:ToyFactory"

    def capabilities(self, options):
        return frozenset("add search list chat chat.tools restart option.k option.chat".split())

    async def start(self, folder):
        with open("starts.txt", "a") as log:
            log.write("start\\n")

    async def stop(self):
        with open("starts.txt", "a") as log:
            log.write("stop\\n")

    def target(self):
        return Toy()


class Broken(ToyFactory):
    async def start(self, folder):
        import a_vendor_that_is_not_there
"""

INI = """
[pytest]
memstory_stories = stories
memstory_target = toy_target:ToyFactory
addopts = --strict-markers
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""

GOOD = """
story: G1
title: A fact is found
tags: [quick]
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
"""


class Project:
    """A folder with stories, and pytest to run there."""

    def __init__(self, pytester):
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeini(INI)
        pytester.makepyfile(toy_target=TOY)
        pytester.syspathinsert()
        (self.path / "stories").mkdir()

    def story(self, text=GOOD, name="stories/a.yaml"):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")

    def run(self, *args):
        return self.pytester.runpytest_inprocess("-p", "no:cacheprovider", *args)

    def run_apart(self, *args):
        return self.pytester.runpytest_subprocess(*args)

    def results(self, folder="reports/latest"):
        document = json.loads((self.path / folder / "results.json").read_text("utf-8"))
        return {case["story"]: case["outcome"] for case in document["cases"]}


WITHOUT_STRANGERS = "-p no:langsmith_plugin -p no:anyio -p no:hypothesispytest"
"""To import the plugins of other libraries takes three quarters of a start, and the tests start many processes."""


@pytest.fixture
def project(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", WITHOUT_STRANGERS)
    return Project(pytester)
