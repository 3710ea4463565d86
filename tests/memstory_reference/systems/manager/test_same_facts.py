"""A fact is one fact, whatever happens to it: said again, changed, changed back, said by another session."""

from datetime import timedelta

import pytest

from memstory.contract.target import Item, Ref, Scope
from memstory_reference.systems.manager.agent import ManagerTools
from memstory_reference.systems.manager.memories import MemoryType

ANN = Scope(user="ann")
CONVERSATION, FACT, CONTEXT = MemoryType.CONVERSATION, MemoryType.FACT, MemoryType.CONTEXT
DAY = timedelta(days=1)
NAME = {"category": "user_profile", "field": "name"}


async def changed(manager, memory, content):
    """Change what a memory says, and return it as it is then."""
    await manager.update(Ref(id=memory.id), Item(text=content), ANN)
    return next(one for one in await manager.memories("ann") if one.id == memory.id)


async def contents(manager):
    return sorted(one.content for one in await manager.memories("ann"))


async def test_a_fact_that_is_said_again_keeps_its_metadata(manager):
    await manager.store("ann", "call me Alex", FACT, NAME)
    again = await manager.store("ann", "call  me Alex", FACT)
    assert again.metadata == NAME
    newer = await manager.store("ann", "call me Alex", FACT, {"field": "nickname", "sure": True})
    assert newer.metadata == {"category": "user_profile", "field": "nickname", "sure": True}
    (found,) = await manager.search_memories("ann", "call me Alex", where={"category": "user_profile"})
    assert found.memory == newer


async def test_one_batch_that_says_a_fact_twice_keeps_the_metadata_of_both(manager):
    await manager.add([Item(text="bees", metadata={"a": 1}), Item(text="bees")], ANN)
    (only,) = await manager.memories("ann")
    assert only.metadata == {"a": 1}


async def test_after_an_update_nothing_that_is_said_is_there_twice(manager):
    first = await manager.store("ann", "the bin goes out on Monday", FACT)
    await changed(manager, first, "the bin goes out on Friday")
    for day in ("Monday", "Friday", "Monday", "Friday", "Monday"):
        await manager.store("ann", f"the bin goes out on {day}", FACT)
    assert await contents(manager) == ["the bin goes out on Friday", "the bin goes out on Monday"]


async def test_an_update_to_what_is_known_leaves_one(manager):
    monday = await manager.store("ann", "Monday", FACT, {"from": "monday"})
    await manager.store("ann", "Friday", FACT, {"from": "friday", "sure": True})
    updated = await changed(manager, monday, "Friday")
    assert updated.metadata == {"from": "monday", "sure": True}
    assert await contents(manager) == ["Friday"]
    assert updated.id == monday.id


async def test_what_was_changed_is_known_again_by_a_new_process(make_world):
    world = make_world()
    first = await world.manager.store("ann", "Monday", FACT)
    await changed(world.manager, first, "Friday")
    later = make_world(store=world.store).manager
    await later.cleanup_expired()
    await later.store("ann", "Friday", FACT)
    await later.store("ann", "Monday", FACT)
    await later.store("ann", "Monday", FACT)
    assert await contents(later) == ["Friday", "Monday"]


async def test_a_changed_fact_that_was_forgotten_can_be_told_again(manager):
    first = await manager.store("ann", "Monday", FACT)
    await changed(manager, first, "Friday")
    assert await manager.delete(Ref(id=first.id), ANN)
    again = await manager.store("ann", "Friday", FACT)
    assert await contents(manager) == ["Friday"]
    assert await manager.memories("ann") == [again]


@pytest.mark.parametrize("limit", [1, 2])
async def test_of_two_statements_of_one_profile_field_the_newer_comes_first(manager, clock, limit):
    await manager.store("ann", "user wants to be called Alex", FACT, NAME)
    clock.moment += DAY
    await manager.store("ann", "user now prefers to be called Sam", FACT, NAME)
    found = await manager.search_memories("ann", "what does user wants to be called", limit=limit)
    assert found[0].memory.content == "user now prefers to be called Sam"
    assert len(found) == limit


async def test_fields_of_others_and_plain_facts_keep_the_order_of_their_scores(manager, clock):
    await manager.store("ann", "bees are insects", FACT, {"field": "name"})
    await manager.store("ann", "bees are loved", FACT, {"category": "user_profile", "field": "likes"})
    clock.moment += DAY
    await manager.store("ann", "some bees sting", FACT, NAME)
    found = await manager.search_memories("ann", "bees are insects", min_score=0)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)


async def test_the_context_of_a_session_is_its_own_for_a_search_by_tool_too(manager):
    here, there = ManagerTools(manager, "ann", "s1"), ManagerTools(manager, "ann", "s2")
    await here.call("store_memory", {"content": "the demo is on stage two", "memory_type": "context"})
    await here.call("store_memory", {"content": "the demo was long", "memory_type": "conversation"})
    await here.call("store_memory", {"content": "the demo is yearly"})
    found = [
        sorted(one["content"] for one in (await tools.call("search_memories", {"query": "the demo"})).result)
        for tools in (here, there)
    ]
    assert found[0] == ["the demo is on stage two", "the demo is yearly", "the demo was long"]
    assert found[1] == ["the demo is yearly", "the demo was long"]
