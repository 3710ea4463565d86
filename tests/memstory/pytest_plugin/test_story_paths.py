"""A story writes below its root and in its case's folder, wherever it asks a target to write."""

import pytest

pytest_plugins = ["pytester"]

WRITER = """
from pathlib import Path
from memstory.controls import Oracle
from memstory.contract.target import TargetFactory


class Writer(Oracle):
    async def open(self, env, clock):
        await super().open(env, clock)
        self.folder = Path(env.workspace)
        if "tape" in env.options:
            Path(env.options["tape"].partition("@")[2]).write_text("tape")

    async def run(self, job, args, scope):
        (self.folder / args["folder"]).mkdir()
        return True


class WriterFactory(TargetFactory):
    name, spec = "writer", "writer:WriterFactory"

    def capabilities(self, options):
        return frozenset("add add.key search list job.backup option.tape".split())

    def target(self):
        return Writer()
"""
BACKUP = """
story: W1
title: t
steps:
  - add: {text: tea, key: "%s"}
  - list:
    save: {folder: hits.0.key}
  - run: {job: backup, args: {folder: "${folder}"}}
    expect: {result: true}
"""
RECORD = """
story: W2
title: t
options: {tape: "record:toy@%s"}
steps: [{add: tea}]
"""


@pytest.fixture
def writer(project):
    project.pytester.makepyfile(writer=WRITER)
    return lambda *words: project.run("--target", "writer:WriterFactory", *words)


@pytest.mark.parametrize("form", [BACKUP, RECORD])
def test_a_story_that_names_a_path_outside_is_invalid_unless_the_person_who_runs_it_says_otherwise(
    project, writer, form, tmp_path
):
    outside = tmp_path / "written"
    project.story(form % outside)
    result = writer()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*is outside the stories' root*--memstory-any-path allows any path*"])
    assert not outside.exists()
    assert list(project.results().values()) == ["invalid"]
    writer("--memstory-any-path").assert_outcomes(passed=1)
    assert outside.exists()


def test_a_recording_is_kept_beside_the_story_that_names_it(project, writer):
    project.story(RECORD % "tape.json")
    writer().assert_outcomes(passed=1)
    assert (project.path / "stories/tape.json").read_text() == "tape"


def test_what_the_command_line_names_may_lie_anywhere(project, writer, tmp_path):
    project.story("story: W3\ntitle: t\nsteps: [{add: tea}]\n")
    writer("--target-option", f"tape=record:toy@{tmp_path}/tape.json").assert_outcomes(passed=1)
    assert (tmp_path / "tape.json").read_text() == "tape"
