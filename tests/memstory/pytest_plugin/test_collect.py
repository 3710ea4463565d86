"""Which files are stories, and how they become items."""

from __future__ import annotations

import json
import sys

import pytest

from memstory.bundled import bundled_stories
from memstory.language.reading import OUR_FAULT
from memstory.language.stories import story_of

pytest_plugins = ["pytester"]

TWO = """
story: A1
title: one
steps: [{add: x}]
---
story: A2
title: two
steps: [{add: x}]
"""


def test_a_story_is_one_item_for_each_target(project):
    # H-04
    project.story(TWO)
    result = project.run("--collect-only", "-q", "--target", "toy_target:ToyFactory", "--target", "control:oracle")
    result.stdout.fnmatch_lines(
        [
            "stories/a.yaml::A1[[]toy_target:ToyFactory[]]",
            "stories/a.yaml::A1[[]control:oracle[]]",
            "stories/a.yaml::A2[[]toy_target:ToyFactory[]]",
            "stories/a.yaml::A2[[]control:oracle[]]",
        ],
        consecutive=True,
    )


def test_a_fault_of_memstory_in_one_story_leaves_the_others_to_run(project, monkeypatch):
    def breaks_at_the_first(document, *rest):
        if document.tree["story"] == "A1":
            raise LookupError("no such thing")
        return story_of(document, *rest)

    monkeypatch.setattr("memstory.language.stories.story_of", breaks_at_the_first)
    project.story(TWO)
    project.story("story: B\ntitle: T\nsteps: [{add: x}]\n", "stories/b.yaml")
    result = project.pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"*stories/a.yaml:1:1: LookupError: no such thing*{OUR_FAULT}*"])


def test_a_story_that_is_invalid_is_said_where_stories_are_only_collected(project):
    project.story("story: B\ntitle: T\nsteps: [{serch: x}, {ad: y}]\n")
    result = project.run("--collect-only", "-q")
    result.stdout.fnmatch_lines(
        ["stories/a.yaml::B", "stories/a.yaml:1:1: 'B': invalid, *:3:10: *'serch'*'search'* (and 1 more error)"]
    )


def test_stories_that_are_only_for_another_target_share_a_line(project):
    project.story("\n---\n".join(f"story: T{n}\ntitle: T\ntargets: [fts5]\nsteps: [{{add: x}}]" for n in range(3)))
    result = project.run("--target", "control:oracle")
    lines = [line for line in result.outlines if "only for" in line]
    assert lines == ["stories/a.yaml:1:1: 'T0' and 2 more, such as 'T1': not run, only for fts5"]


def test_a_node_id_selects_its_case(project):
    # H-03
    project.story(TWO)
    project.run("stories/a.yaml::A2[toy_target:ToyFactory]").assert_outcomes(passed=1)
    project.run("stories/a.yaml::A2").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "arguments", [["-k", "A1"], ["-k", "tea-is-kept"], ["-m", "quick"], ["-m", "story and not late"]]
)
def test_names_and_tags_select_under_strict_markers(project, arguments):
    project.story(
        TWO.replace("title: one", "title: one\nslug: tea-is-kept\ntags: [quick]").replace(
            "title: two", "title: two\ntags: [late]"
        )
    )
    project.run(*arguments).assert_outcomes(passed=1, deselected=1)


def test_last_failed_runs_only_what_failed(project):
    project.story(
        TWO.replace("title: two\nsteps: [{add: x}]", "title: two\nsteps: [{list: , expect: {hits: {count: 9}}}]")
    )
    project.pytester.runpytest_inprocess().assert_outcomes(passed=1, failed=1)
    project.pytester.runpytest_inprocess("--lf").assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("name", "arguments", "collected"),
    [
        ("else/where.story.yaml", [], 1),
        ("else/where.yaml", [], 0),
        ("else/where.yaml", ["else/where.yaml"], 1),
        ("else/where.yaml", ["else"], 0),
        ("stories/deep/er.yml", [], 1),
    ],
)
def test_a_file_is_ours_by_ending_folder_or_being_named(project, name, arguments, collected):
    # H-01
    project.story(name=name)
    project.run(*arguments).assert_outcomes(passed=collected)


def test_foreign_yaml_is_never_opened_and_costs_no_import(project):
    (project.path / "values.yaml").write_text("{{ not: [yaml }}")
    (project.path / "secret.yml").write_bytes(b"\xff\xfe")
    project.pytester.makepyfile(
        test_it="""
        import sys
        def test_nothing_heavy_was_imported():
            heavy = {"chromadb", "onnxruntime", "jsonschema", "deepdiff", "yaml", "memstory.running.runner"}
            assert not heavy & set(sys.modules)
        """
    )
    result = project.run_apart("-q")
    result.assert_outcomes(passed=1)
    assert not (project.path / "reports").exists()


def test_a_wrong_document_fails_alone_and_says_where(project):
    # H-14
    project.story(TWO.replace("title: two", "titel: two"))
    project.pytester.makepyfile(test_other="def test_other(): pass")
    result = project.run()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["stories/a.yaml:6:1: *'titel'*Did you mean 'title'*"])
    assert "Traceback" not in result.stdout.str()
    assert project.results() == {"A1": "passed", "A2": "invalid"}


@pytest.mark.parametrize("text", ["a: [", "", "\t", "story: !!python/object:os.system x", "- 1\n- 2\n"])
def test_text_that_is_no_story_is_an_item_that_fails(project, text):
    project.story(text)
    project.story(name="stories/b.yaml")
    result = project.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*stories/a.yaml:*"])
    assert "Traceback" not in result.stdout.str()


def test_an_id_that_another_file_has_used_is_invalid_there(project):
    project.story()
    project.story(name="stories/b.yaml")
    result = project.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["stories/b.yaml:1:1: *'G1'*stories/a.yaml:1:1*"])


def test_rows_of_a_parametrized_story_are_items_of_their_own(project):
    project.story(
        """
story: R1
title: a row
parametrize: [{row: one, word: x}, {row: two, word: y}]
steps: [{add: "${word}"}, {search: "${word}", expect: {hits: {count: 1}}}]
"""
    )
    result = project.run("-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*R1[[]toy_target:ToyFactory-one[]] PASSED*", "*R1[[]toy_target:ToyFactory-two[]] PASSED*"]
    )


def test_a_story_that_names_its_targets_is_no_item_on_others(project):
    project.story(TWO.replace("title: one", "title: one\ntargets: [somebody]"))
    project.run().assert_outcomes(passed=1)


def test_autouse_fixtures_of_the_project_reach_stories(project):
    project.story()
    project.pytester.makeconftest(
        """
        import pytest
        @pytest.fixture(autouse=True)
        def noted(request):
            with open("noted.txt", "a") as file:
                file.write(request.node.name)
            yield
        """
    )
    project.run().assert_outcomes(passed=1)
    assert (project.path / "noted.txt").read_text() == "G1[toy_target:ToyFactory]"


def test_this_pytest_itself_knows_the_plugin():
    assert "memstory.pytest_plugin" in sys.modules


@pytest.mark.parametrize(
    ("named", "said"),
    [("fst5", "*'T': not run, only for fst5; unknown target 'fst5'. Did you mean 'fts5'?*"),
     ("fts5", "*stories/a.yaml:1:1: 'T': not run, only for fts5")],
)  # fmt: skip
def test_a_story_for_other_targets_is_named_in_the_run(project, named, said):
    project.story(f"story: T\ntitle: T\ntargets: [{named}]\nsteps: [{{add: x}}]\n")
    project.run().stdout.fnmatch_lines([said])


def test_a_bundled_story_fails_under_the_name_that_can_be_typed_again(project):
    words = [f"--rootdir={project.path}", "-c", "tox.ini", "--target", "control:nothing"]
    result = project.run(str(bundled_stories() / "generic/list.yaml"), *words)
    assert str(bundled_stories()) not in "\n".join(result.outlines)
    result.stdout.fnmatch_lines(["bundled/generic/list.yaml:*", "story *(bundled/generic/list.yaml:*"])
    document = json.loads((project.path / "reports/latest/results.json").read_text("utf-8"))
    assert {case["where"].partition(":")[0] for case in document["cases"]} == {"bundled/generic/list.yaml"}
