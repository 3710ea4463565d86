import json

from memstory.contract.installation import install_command
from memstory.data_sets import SETS

TWO = """\
story: A
title: First
slug: tea-is-kept
tags: [quick]
steps: [{add: x}]
---
story: B
title: Second
covers: [L-1]
parametrize: [{row: one, x: tea}, {row: two, x: ale}]
steps: [{search: {query: "${x}", min_score: 0.5}}]
"""


def test_the_table_has_id_slug_title_tags_needs_and_place(terminal):
    terminal.save(TWO)
    said = terminal.type("list")
    assert said.code == 0
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert [line for line in lines[:5] if not line.startswith("---")] == [
        "story slug title tags needs where",
        "A tea-is-kept First quick add a.story.yaml:1",
        "B[one] Second search search.min_score a.story.yaml:7",
        "B[two] Second search search.min_score a.story.yaml:7",
    ]
    assert lines[6] == "2 stories"
    assert ", ".join(SETS) in " ".join(lines[7:])


def test_a_narrow_terminal_gets_lines_that_it_can_show(terminal, monkeypatch):
    terminal.save(TWO.replace("title: Second", f"title: {'A long title that wraps ' * 6}"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    said = terminal.type("list").out.splitlines()
    assert said[0].split() == ["story", "slug", "title"]
    assert max(map(len, said)) <= 80


def test_tags_select(terminal):
    terminal.save(TWO)
    assert [story["id"] for story in json.loads(terminal.type("list", "--tag", "quick", "--json").out)] == ["A"]


def test_the_bundled_stories_are_listed_by_file_with_counts(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = terminal.type("list", "--bundled").out.splitlines()
    assert max(map(len, lines)) <= 100
    (recall,) = (line.split() for line in lines if line.startswith("generic/recall.yaml"))
    stories = json.loads(terminal.type("list", "--bundled", "--json").out)
    # A line for each file, some of two.
    assert len(lines) < 1.25 * len({story["file"] for story in stories})
    assert int(recall[1]) == len({story["id"] for story in stories if story["file"].endswith("generic/recall.yaml")})
    assert " ".join(recall[2:6]) == "What any memory must"


def test_the_bundled_stories_of_a_folder_or_tag_and_all_are_listed_each(terminal):
    for words in (["generic"], ["--all"], ["--tag", "durability"]):
        said = terminal.type("list", "--bundled", *words).out
        assert said.split()[:3] == ["story", "slug", "title"]
        assert "bundled/" in said


def test_json_has_all_that_is_known(terminal):
    terminal.save(TWO)
    assert json.loads(terminal.type("list", "--json").out)[1] == {
        "id": "B",
        "row": "one",
        "slug": None,
        "title": "Second",
        "tags": [],
        "covers": ["L-1"],
        "targets": [],
        "needs": ["search", "search.min_score"],
        "file": "a.story.yaml",
        "line": 7,
    }


def test_what_cannot_be_read_is_told_beside_the_list(terminal):
    terminal.save(f"{TWO}---\nstory: C\ntitle: T\nsteps: []\n")
    said = terminal.type("list")
    assert said.code == 1
    assert "2 stories" in said.out
    assert said.err.startswith("a.story.yaml:15:8: ")


def test_the_list_of_targets_is_as_wide_as_the_screen(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = terminal.type("list", "targets").out.splitlines()
    assert lines[0].split() == ["target", "comes", "from", "can"]
    assert max(map(len, lines)) <= 80


def test_a_backend_that_is_not_installed_claims_no_ability(terminal, monkeypatch):
    absent = {"lancedb", "chromadb", "txtai", "onnxruntime", "mcp"}
    monkeypatch.setattr("memstory.targets.discovery._is_here", lambda package: package not in absent)
    rows = {row["target"]: row for row in json.loads(terminal.type("list", "targets", "--json").out)}
    lacking = {
        "lancedb": "lancedb,reference",
        "chroma": "reference",
        "txtai": "reference,txtai",
        "mcp-server-memory": "mcp",
    }
    problems = {target: f"not installed: {install_command(extras)}" for target, extras in lacking.items()}
    assert {target: rows[target]["problem"] for target in lacking} == problems
    assert [target for target in lacking if "can" in rows[target]] == []
    assert "search" in rows["fts5"]["can"]


def test_a_tag_that_no_story_has_is_an_error_with_the_nearest(terminal):
    terminal.save()
    said = terminal.type("list", "--tag", "quik")
    assert (said.code, said.out) == (2, "")
    assert all(word in said.err for word in ("'quik'", "Did you mean 'quick'?"))


def test_targets_misspelt_is_a_hint(terminal):
    terminal.save()
    said = terminal.type("list", "targts")
    assert said.code == 2
    assert "Did you mean 'targets'?" in said.err
