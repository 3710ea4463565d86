"""Fifty tasks of two owners with the same texts, so with the same ids: nothing crosses, nothing is lost."""

import asyncio

from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.memory_tools import ManagerTools

TASKS, FACTS = 50, 4


async def test_fifty_tasks_of_two_owners_with_the_same_ids_never_cross(manager):
    async def work(number):
        owner, topic = ("ann", "bob")[number % 2], number // 2
        for fact in range(FACTS):
            stored = await manager.store(owner, f"fact {topic} of {fact}", MemoryType.FACT, {"owner_was": owner})
            await manager.set_context(owner, f"s{topic}", "last", f"{owner} {fact}")
            found = await manager.search(owner, f"fact {topic}", limit=50, min_score=0)
            assert {one.memory.metadata.get("owner_was", owner) for one in found} == {owner}
            assert (await manager.get(owner, stored.id)).metadata == {"owner_was": owner}
            assert (await manager.get_context(owner, f"s{topic}", "last")).startswith(owner)
        if number % 10 < 2:
            gone = await ManagerTools(manager, owner).call("forget_memory", {"memory_id": stored.id})
            assert gone.result["success"]
            assert await manager.get(owner, stored.id) is None

    await asyncio.gather(*map(work, range(TASKS)))
    for owner in ("ann", "bob"):
        facts = await manager.memories(owner, [MemoryType.FACT])
        assert (len(facts), {one.metadata["owner_was"] for one in facts}) == (95, {owner})
        assert await manager.count(owner, MemoryType.CONTEXT) == 25
