"""Fifty tasks of two owners with the same texts and ids: nothing crosses, nothing is lost."""

import asyncio

TASKS, RUNS = 50, 4


async def test_fifty_tasks_of_two_owners_with_the_same_ids_never_cross(on_words, run_of):
    async def work(number):
        owner = ("ann", "bob")[number % 2]
        for run in range(RUNS):
            identifier = f"run-{number // 2}-{run}"
            one = run_of(identifier, f"Covered subject{number // 2} {run}.", title=owner, facts=(f"told by {owner}",))
            await on_words.store([one], owner)
            found = await on_words.search(f"Covered subject{number // 2}", owner, 50)
            assert {entry.observation.title for entry in found} == {owner}
            assert (await on_words.get(identifier, owner)).title == owner
            await on_words.rate(identifier, {"ann": 1, "bob": -1}[owner], owner)
            assert f"told by {'ann' if owner == 'bob' else 'bob'}" not in await on_words.get_context("Covered", owner)
        if number % 10 < 2:
            assert await on_words.delete([f"run-{number // 2}-0"], owner) == [f"run-{number // 2}-0"]

    await asyncio.gather(*map(work, range(TASKS)))
    for owner, rating in (("ann", 1), ("bob", -1)):
        kept = await on_words.recent(owner)
        assert (len(kept), {one.rating for one in kept}, {one.title for one in kept}) == (95, {rating}, {owner})
        assert (await on_words.status(owner))["vectors"] == 95
