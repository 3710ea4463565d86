"""Fifty tasks of two owners who store the same runs at once: nothing of one is given to the other, by id neither."""

import asyncio
import random
import time

import pytest

OWNERS = ("ann", "bob")
NARRATIVES = [f"Covered topic{number} and caching." for number in range(30)]


async def live(service, run_of, owner, chance, *, kept, is_over):
    """Do what callers do until it is over: each answer is the owner's, whose word is in every title."""
    while not is_over():
        await asyncio.sleep(0)
        number, narrative = chance.randrange(40), chance.choice(NARRATIVES)
        identifier = f"run-{number}"
        await service.store([run_of(identifier, narrative, title=f"{owner} wrote it", task=narrative)], owner)
        kept.add(identifier)
        found = [one.observation for one in await service.search(narrative, owner, 5)]
        found += [*await service.recent(owner, 5), await service.get(identifier, owner)]
        assert {one.title for one in found if one} <= {f"{owner} wrote it"}
        context = await service.get_context(narrative, owner)
        assert OWNERS[owner == OWNERS[0]] not in context
        if chance.random() < 0.2:
            await service.rate(identifier, 0.5, owner)
        if chance.random() < 0.1:
            await service.delete([identifier], owner)
        if chance.random() < 0.02:
            await service.delete([f"{owner}-own"], OWNERS[owner == OWNERS[0]])


async def together(service, run_of, is_over):
    for owner in OWNERS:
        await service.store([run_of(f"{owner}-own", "Covered caching.", title=f"{owner} wrote it")], owner)
    kept = {owner: set() for owner in OWNERS}
    chances = [random.Random(number) for number in range(50)]  # noqa: S311  (chance, no secrets)
    whose = [OWNERS[number % 2] for number in range(50)]
    tasks = zip(whose, chances, strict=True)
    await asyncio.gather(*(live(service, run_of, *one, kept=kept[one[0]], is_over=is_over) for one in tasks))
    for owner, other in (OWNERS, OWNERS[::-1]):
        every = await service.recent(owner)
        assert {one.title for one in every} == {f"{owner} wrote it"}
        assert {one.id for one in every} <= kept[owner] | {f"{owner}-own"}
        assert await service.get(f"{owner}-own", owner) is not None, "the other owner has deleted it by its id"
        assert await service.get(f"{owner}-own", other) is None


async def test_two_owners_of_the_same_runs_never_meet(on_words, run_of):
    turns = iter(range(60))
    await together(on_words, run_of, lambda: next(turns, None) is None)


@pytest.mark.doses("seconds", 60)
async def test_two_owners_of_the_same_runs_never_meet_for_long(on_words, run_of, seconds):
    end = time.monotonic() + seconds
    await together(on_words, run_of, lambda: time.monotonic() > end)
