"""Whose memories came back, as the receipts tell."""

from dataclasses import replace

import pytest

from memstory.judging.verdicts import foreign_texts, owners_of, step_verdicts
from memstory.language.stories import parse_stories
from memstory.results.recording import Recording, StepRecord

STORY = """story: A
title: T
steps:
  - {add: a safe, as: ann}
  - {add: a boat, as: bob}
  - {search: safe, as: bob}
"""


def record(path, op, user, result, **more):
    return StepRecord(path=(path,), op=op, args={}, user=user, session=None, at="", result=result, **more)


def memory(id_, text):
    return {"id": id_, "text": text}


SAFE, BOAT = memory("1", "a safe"), memory("2", "a boat")
ADDED = [record(0, "add", "ann", {"items": [SAFE]}), record(1, "add", "bob", {"items": [BOAT]})]


def test_another_users_memory_among_the_hits_fails_a_story_that_expects_nothing_of_them():
    (story,) = parse_stories(STORY, "f.yaml")
    steps = [*ADDED, record(2, "search", "bob", [BOAT, SAFE])]
    (found,) = step_verdicts(story, Recording(story="A", target="t", steps=steps))
    assert (found.passed, found.check, found.reason) == (False, "owner", "hits have a memory of another user: 'a safe'")


def test_whose_memory_came_back_is_said_before_how_many_came():
    (story,) = parse_stories(
        STORY.replace("safe, as: bob}\n", "safe, as: bob, expect: {hits: {count: 1}}}\n"), "f.yaml"
    )
    steps = [*ADDED, record(2, "search", "bob", [BOAT, SAFE])]
    found = step_verdicts(story, Recording(story="A", target="t", steps=steps))
    assert [one.check for one in found if not one.passed] == ["owner", "count"]


@pytest.mark.parametrize("op", ["search", "list", "get"])
def test_every_way_of_reading_is_looked_at(op):
    result = SAFE if op == "get" else [SAFE]
    assert foreign_texts(record(2, op, "bob", result), owners_of(ADDED)) == ["a safe"]
    assert foreign_texts(record(2, op, "ann", result), owners_of(ADDED)) == []


@pytest.mark.parametrize(
    "hit", [memory("1", "a boat"), memory(None, "a safe"), memory("9", "never told"), memory("2", "a boat")]
)
def test_only_a_memory_that_was_acknowledged_to_others_alone_is_a_strangers(hit):
    assert foreign_texts(record(2, "search", "bob", [hit]), owners_of(ADDED)) == []


def test_two_users_may_have_one_id_for_the_same_text():
    both = [*ADDED, record(1, "add", "bob", {"items": [SAFE]})]
    assert foreign_texts(record(2, "search", "bob", [SAFE]), owners_of(both)) == []


def test_what_was_refused_brought_nothing():
    refused = replace(record(2, "get", "bob", None), error="no")
    assert foreign_texts(refused, owners_of(ADDED)) == []
