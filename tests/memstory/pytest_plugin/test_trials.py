"""Trials end to end: how often a case runs, with which seeds, and what becomes of it."""

import json

import pytest

pytest_plugins = ["pytester"]

MOODY = """
from memstory.controls import Oracle, OracleFactory

class Moody(Oracle):
    async def search(self, query, scope):
        return () if self._seed % 2 else await super().search(query, scope)

class MoodyFactory(OracleFactory):
    spec = None
    def target(self):
        return Moody()
"""

STORY = """
story: T1
title: A fact is found more often than not
trials: 3
pass: {at_least: 2}
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
"""


@pytest.fixture
def case(project):
    """Return a function: arguments to what was reported of the one case, and pytest's own outcome."""
    project.pytester.makepyfile(moody=MOODY)

    def run(*args, story=STORY):
        project.story(story)
        result = project.run("--target", "moody:MoodyFactory", *args)
        document = json.loads((project.path / "reports/latest/results.json").read_text("utf-8"))
        return document["cases"][0], result

    return run


def test_every_trial_has_a_seed_of_its_own_and_enough_of_them_must_pass(case):
    found, result = case()
    result.assert_outcomes(passed=1)
    assert [(trial["recording"]["seed"], trial["outcome"]) for trial in found["trials"]] == [
        (0, "passed"),
        (1, "failed"),
        (2, "passed"),
    ]
    assert found["rate"]["flaky"]
    assert found["reason"].startswith("flaky: 2 of 3 trials passed, 2 needed")
    result.stdout.fnmatch_lines(["flaky: T1*passed 2 of 3 trials (95% interval 0.21 to 0.94, pass^3 0.00)"])


def test_a_case_that_passes_too_rarely_fails_and_tells_which_trial(case):
    found, result = case(story=STORY.replace("at_least: 2", "at_least: 3"))
    result.assert_outcomes(failed=1)
    assert found["reason"].startswith("2 of 3 trials passed, 3 needed")
    result.stdout.fnmatch_lines(["trial 2 of 3: failed"])


def test_the_option_repeats_a_story_that_asks_for_nothing_and_wants_every_trial(case):
    plain = STORY.replace("trials: 3\npass: {at_least: 2}\n", "")
    found, result = case("--trials", "4", story=plain)
    result.assert_outcomes(failed=1)
    assert (found["rate"]["passed"], found["rate"]["trials"]) == (2, 4)
    assert found["reason"].startswith("2 of 4 trials passed, 4 needed")


def test_the_option_keeps_the_share_that_the_story_said_to_be_enough(case):
    found, result = case("--trials", "4")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*2 of 4 trials passed, 3 needed*"])
    assert found["rate"]["pass_hat"][:2] == [0.5, 0.166667]
