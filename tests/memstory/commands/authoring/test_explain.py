import json

import pytest

MANY_NEEDS = """\
story: needy
title: Needs much
requires: [expiry]
options: {toolset: dual}
vectors: {a: [1, 0]}
model: [{reply: ok}]
steps:
  - add: x
    as: ann
  - repeat:
      times: 2
      steps:
        - run: cleanup
          as: ben
  - search: a
    expect: {hits: {scores: {length: 1}}}
"""


def test_every_need_is_told_with_the_part_that_calls_for_it(terminal):
    terminal.save(MANY_NEEDS)
    said = terminal.type("explain", "a.story.yaml", "--json")
    (story,) = json.loads(said.out)
    needs = {need["capability"]: need["because"] for need in story["needs"]}
    assert needs == {
        "add": ["step 1 (add), line 8"],
        "embedder.fixed": ["vectors:"],
        "expiry": ["requires:"],
        "job.cleanup": ["step 2.1 (run), line 13"],
        "llm.scripted": ["model:"],
        "option.toolset": ["options:"],
        "scope.user": ["steps of several users"],
        "search": ["step 3 (search), line 15"],
        "search.scores": ["step 3 (search), line 15"],
    }


def words(text):
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def own_target(terminal, monkeypatch):
    """An adapter in the folder, which can add, search, restart and keep users apart."""
    monkeypatch.syspath_prepend("")
    terminal.type("new", "target", "explained_here")
    return "explained_here:ExplainedHereFactory"


def test_targets_are_told_with_what_they_lack(terminal, own_target):
    terminal.save(MANY_NEEDS)
    said = terminal.type("explain", "needy", "--target", own_target)
    assert said.code == 1
    lacks = "embedder.fixed, expiry, job.cleanup, llm.scripted, option.toolset"
    assert words(said.out)[-1] == f"{own_target} no {lacks}"


def test_a_story_that_some_target_can_run_ends_with_0(terminal):
    terminal.save()
    said = terminal.type("explain", "tea")
    assert said.code == 0
    assert "control:oracle yes" in words(said.out)


def test_a_story_for_other_targets_says_so(terminal):
    terminal.save("story: A\ntitle: T\ntargets: [mine]\nsteps: [{add: x}]\n")
    said = terminal.type("explain", "A", "--target", "control:oracle")
    assert said.code == 1
    assert "only for mine" in said.out


def test_a_bundled_story_is_found_by_its_id(terminal, own_target):
    said = terminal.type("explain", "S6g", "--target", own_target)
    assert said.code == 1
    assert f"{own_target} no get.key" in "\n".join(words(said.out))


def test_a_story_that_talks_runs_by_the_shim_and_that_is_told(terminal, own_target):
    said = terminal.type("explain", "S5", "--target", own_target, "--target", "control:oracle")
    assert said.code == 0
    assert f"{own_target} yes its own chat: the harness talks for it" in words(said.out)
    assert "control:oracle no chat, chat.tools" in words(said.out)
    (story,) = json.loads(terminal.type("explain", "S5", "--target", own_target, "--json").out)
    assert [(target["can"], target["shim"]) for target in story["targets"]] == [(True, True)]


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["teh"], "'tea'"),
        (["tea", "--target", "control:orcale"], "'control:oracle'"),
    ],
)
def test_unknown_names_get_the_nearest(terminal, words, nearest):
    terminal.save()
    said = terminal.type("explain", *words)
    assert said.code == 2
    assert (f"'{words[-1]}'" in said.err, f"Did you mean {nearest}?" in said.err) == (True, True)


def test_a_story_that_is_wrong_is_told_why(terminal):
    terminal.save("story: A\ntitle: T\nsteps: []\n")
    for wanted in ("A", "a.story.yaml"):
        said = terminal.type("explain", wanted)
        assert said.code == 1
        assert said.err.startswith("a.story.yaml:3:8: 'steps' ")


def test_a_story_is_found_by_its_slug(terminal):
    terminal.save(MANY_NEEDS.replace("title:", "slug: much-needed\ntitle:"))
    assert terminal.type("explain", "much-needed").out.startswith("needy much-needed: Needs much\n")


def test_targets_that_the_story_is_not_meant_for_have_no_row(terminal, own_target):
    terminal.save("story: only\ntitle: T\ntargets: [control:oracle]\nsteps: [{add: x}]\n")
    said = terminal.type("explain", "only", "--target", own_target, "--target", "control:oracle")
    assert words(said.out)[-3:] == [
        "target can lacks",
        "-------------- ----- -------",
        "control:oracle yes",
    ]


def test_an_unknown_story_names_the_nearest_ones_only(terminal):
    terminal.save("\n---\n".join(f"story: S{n}\ntitle: T\nsteps: [{{add: x}}]" for n in range(50)))
    said = terminal.type("explain", "S500")
    assert said.code == 2
    assert "unknown story 'S500'. Did you mean 'S50" in said.err or "Did you mean 'S5'" in said.err
    assert len(said.err) < 200
