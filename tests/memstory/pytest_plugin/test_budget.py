"""The budget of a run: what comes after it is spent is neither passed nor failed, and is told."""

import json

import pytest

pytest_plugins = ["pytester"]

COUNTING = """
from memstory.contract.target import ModelUse
from memstory.controls import Oracle, OracleFactory

class Counting(Oracle):
    asked = 0

    @property
    def model_use(self):
        return ModelUse(calls=self.asked, prompt_tokens=100 * self.asked, answer_tokens=10 * self.asked)

    async def add(self, items, scope):
        self.asked += 1
        return await super().add(items, scope)

class CountingFactory(OracleFactory):
    spec = None
    def target(self):
        return Counting()
"""

STORY = """
story: B1
title: A fact is found
parametrize: [{row: a, name: Ana}, {row: b, name: Ben}, {row: c, name: Cy}, {row: d, name: Dee}]
steps:
  - add: My name is ${name}.
  - search: name
    expect: {hits: {count: 1}}
"""


@pytest.fixture
def run(project):
    """Return a function: options to the outcomes by case, the result of pytest and what the report says."""
    project.pytester.makepyfile(counting=COUNTING)
    project.story(STORY)

    def run(*options):
        result = project.run("--target", "counting:CountingFactory", *options)
        folder = project.path / "reports/latest"
        document = json.loads((folder / "results.json").read_text("utf-8"))
        return [case["outcome"] for case in document["cases"]], result, (folder / "report.md").read_text("utf-8")

    return run


@pytest.mark.parametrize("options", [
    ("--max-tokens", "220"), ("--max-cost", "0.00003", "--price", "0.1/0.5"), ("--max-tokens", "111"),
])  # fmt: skip
def test_cases_after_the_budget_is_spent_are_exhausted_and_told(run, options):
    outcomes, result, report = run(*options)
    assert outcomes == ["passed", "passed", "exhausted", "exhausted"]
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["*2 cases did not run: budget exhausted: *--max-*"])
    assert "2 cases did not run" in report


def test_each_run_begins_with_its_whole_budget(run):
    run("--max-tokens", "220")
    assert run("--max-tokens", "220")[0].count("passed") == 2


def test_without_a_limit_every_case_runs(run):
    assert run()[0] == ["passed"] * 4


@pytest.mark.parametrize("options", [
    ("--max-cost", "1"), ("--max-cost", "1", "--price", "cheap"), ("--max-cost", "1", "--price", "0.1"),
    ("--max-tokens", "0"), ("--max-cost", "-1", "--price", "1/1"),
])  # fmt: skip
def test_a_budget_that_cannot_be_kept_is_refused_before_a_case_runs(project, options):
    project.story(STORY)
    result = project.run("--target", "control:oracle", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stderr.str()
    result.stderr.fnmatch_lines(["*--*"])
