"""Which memories a run is about: those that somebody named, else the project's own, and never others unasked."""

import json

import pytest

from memstory.running.supervision import SUPERVISOR

pytest_plugins = ["pytester"]

NOBODY_CHOSE = """
[pytest]
memstory_stories = stories
asyncio_default_fixture_loop_scope = function
"""
OFFERS = """
def pytest_memstory_targets():
    return {"mine": "toy_target:ToyFactory"}
"""
NO_REFERENCE = """
def pytest_memstory_targets():
    return {"reference": "a_vendor_that_is_not_there:Factory"}
"""
OWN_OPTION = """
def pytest_addoption(parser):
    parser.addoption("--target", default="staging")
"""
TABLES = """
[targets.mine]
target = "toy_target:ToyFactory"

[targets.other]
target = "memstory.controls:OracleFactory"
"""


@pytest.fixture
def free(project):
    """A project with a story that names no target."""
    project.pytester.makeini(NOBODY_CHOSE)
    project.story()
    project.story("story: G2\ntitle: Two\nsteps: [{add: tea}]\n", "stories/b.yaml")
    return project


def targets(project):
    document = json.loads((project.path / "reports/latest/results.json").read_text("utf-8"))
    return sorted({case["target"] for case in document["cases"]})


@pytest.mark.parametrize("words", [(), ("stories/a.yaml::G1[mine]",), ("--collect-only",)])
def test_without_a_target_the_run_ends_with_one_error_that_says_what_to_write(free, words):
    result = free.run(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = result.stderr.str()
    assert said.count("ERROR") == 1
    assert "stories/a.yaml: there are stories" in said
    assert '[tool.memstory]\ntargets = ["my_module:MyFactory"]' in said
    assert "--memstory-target NAME" in said
    assert not (free.path / "reports").exists()


def test_without_a_target_workers_say_it_once(free):
    result = free.run_apart("-n", "2")
    result.assert_outcomes(errors=1)
    # In CI pytest says a message once more in its summary, and whole.
    errors, _, _ = result.stdout.str().partition("short test summary info")
    assert errors.count("there are stories, but no memory to test is named") == 1


def test_a_project_without_stories_needs_no_target(pytester):
    pytester.makeini(NOBODY_CHOSE)
    pytester.makepyfile(test_it="def test_it(): pass")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_the_line_that_the_error_says_chooses_the_target(free):
    (free.path / "pyproject.toml").write_text('[tool.memstory]\ntargets = ["toy_target:ToyFactory"]\n')
    free.run().assert_outcomes(passed=2)
    assert targets(free) == ["toy_target:ToyFactory"]


@pytest.mark.parametrize("words", [(), ("-n", "1")])
def test_stories_run_on_all_tables_of_the_project(free, words):
    (free.path / "memstory.toml").write_text(TABLES)
    (free.run_apart if words else free.run)(*words).assert_outcomes(passed=4)
    assert targets(free) == ["mine", "other"]


def test_stories_run_on_what_a_conftest_offers(free):
    free.pytester.makeconftest(OFFERS)
    free.run().assert_outcomes(passed=2)
    assert targets(free) == ["mine"]


def test_targets_are_chosen_by_who_says_it_nearest(free):
    (free.path / "memstory.toml").write_text(TABLES)
    (free.path / "pyproject.toml").write_text('[tool.memstory]\ntargets = ["other"]\n')
    free.run()
    assert targets(free) == ["other"]
    free.pytester.makeini(f"{NOBODY_CHOSE}memstory_target = control:oracle\n")
    free.run()
    assert targets(free) == ["control:oracle"]
    free.run("--target", "mine")
    assert targets(free) == ["mine"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('targets = "fts5"', "[tool.memstory] targets is 'fts5'; allowed: a list of names"),
        ("targets = [5]", "[tool.memstory] targets is [5]; allowed: a list of names"),
        ('targets = ["fst5"]', "unknown target 'fst5'. Did you mean 'fts5'?"),
        ('target = ["fts5"]', "[tool.memstory]: unknown key 'target'. Did you mean 'targets'?"),
        ('targets = ["fts5"]\nreport = "out"', "[tool.memstory]: unknown key 'report'. Known: targets."),
    ],
)
def test_a_wrong_setting_is_one_error(free, written, said):
    (free.path / "pyproject.toml").write_text(f"[tool.memstory]\n{written}\n")
    result = free.run()
    assert (result.ret, result.stderr.str().count(said)) == (pytest.ExitCode.USAGE_ERROR, 1)


def test_a_setting_that_is_no_table_is_one_error(free):
    (free.path / "pyproject.toml").write_text("[tool]\nmemstory = [5]")
    result = free.run()
    assert (result.ret, result.stderr.str().count("memstory] is no table")) == (pytest.ExitCode.USAGE_ERROR, 1)


def test_an_option_that_belongs_to_the_project_is_said_once_with_ours(free):
    free.pytester.makeconftest(OWN_OPTION)
    result = free.run("--target", "test")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--target is an option of this project: to memstory, say --memstory-target" in result.stderr.str()
    assert "is an option of this project" not in result.stdout.str()
    (free.path / "memstory.toml").write_text(TABLES)
    for run, words in ((free.run, ()), (free.run_apart, ("-n", "1"))):
        result = run("--target", "test", *words)
        result.assert_outcomes(passed=4)
        assert result.stdout.str().count("to memstory, say --memstory-target") == 1
    assert "is an option of this project" not in free.run().stdout.str()


@pytest.fixture
def waited_for(free, monkeypatch, tmp_path):
    """The same project, whose pytest `memstory run` has started; the reference is not installed whole."""
    monkeypatch.setenv(SUPERVISOR, str(tmp_path))
    free.pytester.makeconftest(NO_REFERENCE)
    return free


@pytest.mark.parametrize("words", [(), ("-n", "1")])
def test_where_the_reference_is_not_installed_memstory_run_takes_our_own_target(waited_for, words):
    result = (waited_for.run_apart if words else waited_for.run)(*words)
    result.assert_outcomes(passed=2)
    said = [line for line in result.outlines if line.startswith("The stories ran on fts5, ")]
    assert len(said) == 1
    assert "needs the package 'a_vendor_that_is_not_there'" in said[0]


def test_a_reference_that_somebody_chose_is_not_replaced(waited_for):
    assert waited_for.run("--target", "reference").ret == pytest.ExitCode.USAGE_ERROR
    waited_for.pytester.makeini(f"{NOBODY_CHOSE}memstory_target = reference\n")
    assert waited_for.run().ret == pytest.ExitCode.USAGE_ERROR


SHELF = """
class Shelf:
    def __init__(self, path):
        self.notes = []

    def add(self, text, user_id):
        self.notes.append(text.strip())

    def search(self, query, user_id, limit=5):
        return [{"text": text, "score": 1.0} for text in self.notes][:limit]
"""
NEEDS_MORE = """
story: scores
title: Hits have scores
steps:
  - add: tea
  - search: tea
    expect: {hits: {scores: {length: 1}}}
---
story: exact
title: A text comes back letter for letter
requires: [add.exact]
steps: [{add: tea}]
"""


@pytest.mark.parametrize(
    ("declared", "outcomes", "said"),
    [
        ("", {"scores": "passed", "exact": "unsupported"}, "Probed: beside what its signatures promise it has"),
        ("    memstory_capabilities = ['add', 'search']", {"scores": "unsupported"}, "What it can do is declared"),
    ],
)
def test_a_run_finds_out_what_a_class_can_do_beside_its_promises(project, declared, outcomes, said):
    project.pytester.makeini(NOBODY_CHOSE)
    project.pytester.makepyfile(shelf=f"{SHELF}\n{declared}\n")
    project.story(NEEDS_MORE)
    result = project.run("--memstory-target", "shelf:Shelf")
    document = json.loads((project.path / "reports/latest/results.json").read_text("utf-8"))
    found = {case["story"]: case["outcome"] for case in document["cases"]}
    assert {name: found[name] for name in outcomes} == outcomes
    assert said in " ".join(result.stdout.str().split())


def test_nothing_is_probed_where_the_signatures_promise_enough(project):
    project.pytester.makeini(NOBODY_CHOSE)
    project.pytester.makepyfile(shelf=SHELF)
    project.story()
    result = project.run("--memstory-target", "shelf:Shelf")
    assert "Its signatures promise what these stories need" in " ".join(result.stdout.str().split())
