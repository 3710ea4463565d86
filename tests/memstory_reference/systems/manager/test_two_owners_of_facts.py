"""Fifty tasks of two owners who state the same facts at once: nothing of one is given to the other, by id neither."""

import asyncio
import random
import time

import pytest

from memstory_reference.systems.manager.memories.memory import MemoryType

OWNERS = ("ann", "bob")
TEXTS = [f"the relay number{number} hums" for number in range(30)]


async def live(manager, owner, chance, is_over):
    """Do what callers do until it is over: each answer is the owner's, whose name is in the metadata."""
    other = OWNERS[owner == OWNERS[0]]
    while not is_over():
        await asyncio.sleep(0)
        text, data = chance.choice(TEXTS), {"by": owner}
        (stored,) = [await manager.store(owner, text, chance.choice([*MemoryType]), data, session=f"s{len(text) % 3}")]
        found = [one.memory for one in await manager.search(owner, text, limit=5)]
        found += await manager.memories(owner, limit=5)
        assert {one.metadata["by"] for one in found if "by" in one.metadata} <= {owner}
        await manager.set_context(owner, "s1", "who", owner)
        assert await manager.get_context(owner, "s1", "who") == owner
        # Equal facts of two owners have equal ids: each is the owner's own row all the same.
        if (theirs := await manager.get(other, stored.id)) is not None:
            assert theirs.metadata["by"] == other
        if chance.random() < 0.2:
            await manager.update(owner, stored.id, chance.choice(TEXTS), data)
        if chance.random() < 0.2:
            await manager.forget(owner, stored.id)
        if chance.random() < 0.05:
            assert not await manager.forget(other, f"no id of {other}")


async def together(manager, is_over):
    own = {owner: await manager.store(owner, f"{owner} is here", MemoryType.FACT, {"by": owner}) for owner in OWNERS}
    chances = [random.Random(number) for number in range(50)]  # noqa: S311  (chance, no secrets)
    await asyncio.gather(*(live(manager, OWNERS[n % 2], chance, is_over) for n, chance in enumerate(chances)))
    for owner, other in (OWNERS, OWNERS[::-1]):
        every = await manager.memories(owner)
        assert {one.metadata.get("by", owner) for one in every} == {owner}
        assert await manager.get(owner, own[owner].id) is not None
        assert await manager.get(other, own[owner].id) is None
        assert not await manager.forget(other, own[owner].id)


async def test_two_owners_of_the_same_facts_never_meet(manager):
    turns = iter(range(200))
    await together(manager, lambda: next(turns, None) is None)


@pytest.mark.doses("seconds", 60)
async def test_two_owners_of_the_same_facts_never_meet_for_long(manager, seconds):
    end = time.monotonic() + seconds
    await together(manager, lambda: time.monotonic() > end)
