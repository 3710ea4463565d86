"""A run with a case that failed never ends with 0, whatever was done to pytest meanwhile."""

import pytest

pytest_plugins = ["pytester"]

TARGETS = """
import pytest
from memstory.controls import Oracle, OracleFactory

class Patching(Oracle):
    patches = True

    async def search(self, query, scope):
        if self.patches:
            pytest.fail = pytest.skip = lambda *_, **__: None
        if query.text == "break":
            raise RuntimeError("gone")
        return []

class PatchingFactory(OracleFactory):
    spec = None
    def target(self):
        return Patching()

class WrongFactory(OracleFactory):
    spec = None
    def target(self):
        made = Patching()
        made.patches = False
        return made
"""

XFAIL = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail(reason="known"))
"""

FAILS = """
story: T1
title: A fact is found
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
"""
BREAKS = FAILS.replace("search: Elixir", "search: break")
INVALID = FAILS + "---\nstory: T2\ntitle: t\nsteps:\n  - nothing: x\n"


@pytest.fixture
def run(project):
    """Return a function that runs a story, with or without a conftest, on the target that patches pytest."""
    project.pytester.makepyfile(patching=TARGETS)

    def run_story(story, *words, conftest="", target="patching:PatchingFactory"):
        project.pytester.makeconftest(conftest)
        project.story(story)
        return project.run_apart("--target", target, *words)

    return run_story


@pytest.mark.parametrize("words", [(), ("-n", "1")])
@pytest.mark.parametrize("story", [FAILS, BREAKS])
def test_a_target_that_takes_failing_from_pytest_does_not_make_a_run_green(run, story, words):
    result = run(story, *words)
    result.assert_outcomes(passed=1)
    assert result.ret == 1
    (told,) = (line for line in result.outlines if line.startswith("pytest counts no failure"))
    assert told.endswith("but 1 case did not end well: T1[patching:PatchingFactory]. The exit code is 1.")


def test_an_invalid_story_counts_too(run):
    result = run(INVALID)
    assert result.ret == 1
    assert any("but 2 cases did not end well: " in line for line in result.outlines)


@pytest.mark.parametrize("story", [FAILS, BREAKS])
def test_a_mark_that_expects_failures_does_not_make_a_run_green(run, story):
    result = run(story, conftest=XFAIL, target="patching:WrongFactory")
    result.assert_outcomes(xfailed=1)
    assert result.ret == 1
    assert any(line.startswith("pytest counts no failure, but 1 case ") for line in result.outlines)


def test_a_run_that_ends_well_or_that_pytest_fails_itself_says_nothing_of_it(run):
    right = run(FAILS, target="control:oracle")
    wrong = run(FAILS, target="patching:WrongFactory")
    assert (right.ret, wrong.ret) == (0, 1)
    assert not any("pytest counts no failure" in line for line in right.outlines + wrong.outlines)
