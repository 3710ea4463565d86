"""Saved names, into steps and out of results; and `$${name}`, a text that only looks like a reference."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.case import Case
from memstory.contract.errors import StoryError
from memstory.language.references import REFERENCE, fill_references, pick, substitute, unmark
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.targets.discovery import load_targets

STORY = """\
story: literal
title: A template is remembered as it is written
vars: {price: 5, template: "$${amount}"}
steps:
  - add: {text: "It costs $${amount}, which is ${price}.", key: "$${amount}"}
    save: {cost: id}
  - get: "$${amount}"
    expect: {hits: {first: {text: {equals: "It costs $${amount}, which is 5."}}}}
  - search: "${template}"
    expect: {hits: {includes: [cost], text: {contains: "costs ${template},"}}}
  - add: See ${cost} and $${cost}
  - search: See
    expect: {hits: {text: {contains: "$${cost}", not: {contains: "See $${cost}"}}}}
"""


def case_of(text):
    (story,) = parse_stories(text, "a.yaml")
    return Case(story=story, target="control:oracle")


def test_a_marked_reference_is_text_in_steps_and_in_what_is_expected(tmp_path):
    (factory,) = load_targets(["control:oracle"]).values()
    result = asyncio.run(play(case_of(STORY).story, factory, tmp_path))
    assert result.outcome == "passed", result.reason


def test_outside_of_the_steps_the_mark_is_gone_at_once():
    model = '[{when: {contains: "$${x}"}, reply: "$${x}"}]'
    text = f'story: a\ntitle: t\noptions: {{a: "$${{x}}", b: ["$${{x}}", 1]}}\nmodel: {model}\nsteps: [{{add: x}}]\n'
    story = case_of(text).story
    assert story.options == {"a": "${x}", "b": ["${x}", 1]}
    assert story.model[0]["reply"] == "${x}"


def test_a_vector_belongs_to_the_text_that_is_embedded():
    story = case_of('story: a\ntitle: t\nsteps: [{add: {text: "cost $${x}", vector: [1, 0]}}]\n').story
    assert list(story.vectors) == ["cost ${x}"]


def test_a_reference_that_is_not_marked_must_still_be_known():
    (story,) = parse_stories("story: a\ntitle: t\nsteps: [{add: 'see ${gone}'}]\n", "a.yaml")
    assert "unknown name ${gone}" in str(story.errors[0])


@pytest.mark.parametrize(
    ("text", "result"),
    [("$${a}", "${a}"), ("$$${a}", "$${a}"), ("$${1}", "$${1}"), ("$ ${a}", "$ 7"), ("$${a}${a}$${a}", "${a}7${a}")],
)
def test_only_a_dollar_right_before_a_reference_marks_it(text, result):
    assert fill_references(text, {"a": 7}.get) == result


@given(st.text(alphabet="a${} ", max_size=12).filter(lambda text: "$$" not in text))
def test_what_was_marked_reads_as_it_did_before(text):
    assert unmark(REFERENCE.sub(r"$\g<0>", text)) == text


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab {}", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(TREES)
def test_a_tree_without_references_stays_as_it_is(tree):
    assert substitute(tree, {"a": 1}) == tree


@given(TREES.filter(lambda tree: tree is not None))
def test_a_whole_reference_becomes_the_saved_value_with_its_type(value):
    assert substitute(["${x}"], {"x": value}) == [value]


def test_a_name_that_nobody_saved_is_the_storys_mistake():
    with pytest.raises(StoryError, match="'gone'"):
        substitute("see ${gone}", {})


@pytest.mark.parametrize(
    ("path", "found"),
    [("", {"items": [{"id": "a"}], "n": 0}), ("items.0.id", "a"), ("items.1.id", None), ("n", 0), ("n.x", None)],
)
def test_a_path_leads_into_a_result_or_to_nothing(path, found):
    assert pick({"items": [{"id": "a"}], "n": 0}, path) == found
