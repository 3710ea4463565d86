import json

TWO = """\
story: A
title: First
tags: [quick]
steps: [{add: x}]
---
story: B
title: Second
covers: [L-1]
parametrize: [{row: one, x: tea}, {row: two, x: ale}]
steps: [{search: {query: "${x}", min_score: 0.5}}]
"""


def test_the_table_has_id_title_tags_needs_and_place(terminal):
    terminal.save(TWO)
    said = terminal.type("list")
    assert said.code == 0
    assert [" ".join(line.split()) for line in said.out.splitlines()] == [
        "story title tags needs where",
        "------- ------- ------ ----------------------- --------------",
        "A First quick add a.story.yaml:1",
        "B[one] Second search search.min_score a.story.yaml:6",
        "B[two] Second search search.min_score a.story.yaml:6",
        "",
        "2 stories",
    ]


def test_tags_select(terminal):
    terminal.save(TWO)
    assert [story["id"] for story in json.loads(terminal.type("list", "--tag", "quick", "--json").out)] == ["A"]


def test_json_has_all_that_is_known(terminal):
    terminal.save(TWO)
    assert json.loads(terminal.type("list", "--json").out)[1] == {
        "id": "B",
        "row": "one",
        "title": "Second",
        "tags": [],
        "covers": ["L-1"],
        "targets": [],
        "needs": ["search", "search.min_score"],
        "file": "a.story.yaml",
        "line": 6,
    }


def test_what_cannot_be_read_is_told_beside_the_list(terminal):
    terminal.save(f"{TWO}---\nstory: C\ntitle: T\nsteps: []\n")
    said = terminal.type("list")
    assert said.code == 1
    assert "2 stories" in said.out
    assert said.err.startswith("a.story.yaml:14:8: ")
