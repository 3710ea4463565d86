"""What is left of a program names the cause, and nothing that could have been left out."""

import pytest

from memstory.contract.values import Item
from memstory.exploring.programs import Action, Memo, Program
from memstory.exploring.shrinking import shrink


def remembered(name, text, metadata, *tags):
    return Memo(name=name, item=Item(text=text, metadata=metadata), tags=frozenset(tags))


async def tags_left(program, breaks):
    async def fails(candidate):
        return breaks(candidate)

    return (await shrink(program, fails, 5.0)).tags


def has_false(program):
    """Return whether a search follows a memory with a field that is False: a memory that loses it fails there."""
    memos = [memo for one in program.operations for memo in one.memos]
    lost = any(value is False for memo in memos for value in memo.item.metadata.values())
    return lost and program.operations[-1].op == "search"


@pytest.mark.parametrize("odd", [("value:braces", "${x} {y}"), ("value:zero", 0), ("value:empty text", "")])
async def test_a_value_that_was_taken_away_is_not_named_as_a_cause(odd):
    tag, value = odd
    memo = remembered("m1", "tea", {"place": value, "topic": False}, "metadata", tag, "value:false")
    program = Program(number=1, operations=(Action(op="add", memos=(memo,)), Action(op="search", text="tea", limit=10)))
    assert await tags_left(program, has_false) == {"metadata", "value:false"}


async def test_a_name_that_was_taken_away_is_not_named_as_a_cause():
    memo = remembered("m1", "tea", {"$gt": "x", "topic": False}, "metadata", "name:dollar", "value:false")
    program = Program(number=1, operations=(Action(op="add", memos=(memo,)), Action(op="search", text="tea", limit=10)))
    assert await tags_left(program, has_false) == {"metadata", "value:false"}


async def test_a_limit_and_a_twin_that_change_nothing_are_not_named_as_causes():
    first = remembered("m1", "tea", {})
    second = remembered("m2", "tea", {"topic": False}, "metadata", "value:false", "equal texts")
    search = Action(op="search", text="tea", limit=1000, tags=frozenset({"limit"}))
    program = Program(number=1, operations=(*(Action(op="add", memos=(one,)) for one in (first, second)), search))
    assert await tags_left(program, has_false) == {"metadata", "value:false"}


async def test_a_limit_that_is_the_cause_is_named():
    search = Action(op="search", text="tea", limit=1000, tags=frozenset({"limit"}))
    program = Program(number=1, operations=(Action(op="add", memos=(remembered("m1", "tea", {}),)), search))
    assert await tags_left(program, lambda one: one.operations[-1].limit == 1000) == {"limit"}
