"""Fifty tasks of two owners who say the same at once: nothing of one is ever given to the other, by id neither."""

import asyncio
import random
import time

import pytest

OWNERS = ("ann", "bob")
TEXTS = [*(f"event {number} came" for number in range(20)), *(f"I hate dish {number}" for number in range(15)),
         "I prefer tabs", "I prefer spaces"]  # fmt: skip


async def live(service, owner, chance, made, is_over):
    """Do whatever a caller does until it is over; each answer must be of the owner."""
    while not is_over():
        await asyncio.sleep(0)
        text, other = chance.choice(TEXTS), OWNERS[owner == OWNERS[0]]
        foreign = [chance.choice(made[other])] if made[other] else []
        own = [chance.choice(made[owner])] if made[owner] else []
        kept = await service.ingest(text, owner, f"s{chance.randrange(4)}")
        made[owner] += [one.id for one in kept]
        found = [one.memory for one in (await service.recall(text, owner, by_score=chance.random() < 0.5)).memories]
        found += [*kept, *await service.memories(owner, limit=5), *await service.history("prefer:indentation", owner)]
        assert {one.user_id for one in found} <= {owner}
        for identifier in foreign:
            assert await service.get(identifier, owner) is None
            assert await service.update(identifier, "taken over", owner) is None
            assert await service.delete([identifier], owner) == []
        if chance.random() < 0.2:
            await service.delete(own, owner)
        if chance.random() < 0.05:
            await service.compress(owner)


async def together(make_service, is_over):
    service = make_service(store_threshold=0, compression_threshold=2, min_chunk_tokens=1)
    made = {owner: [] for owner in OWNERS}
    chances = [random.Random(number) for number in range(50)]  # noqa: S311  (chance, not secrets)
    await asyncio.gather(*(live(service, OWNERS[n % 2], chance, made, is_over) for n, chance in enumerate(chances)))
    assert set(made["ann"]).isdisjoint(made["bob"])
    for owner in OWNERS:
        assert {one.content for one in await service.memories(owner)} != set()
        assert "taken over" not in {one.content for one in await service.memories(owner)}
        assert await service.centroid_drift(owner) <= 1e-6


async def test_two_owners_with_the_same_texts_never_meet(make_service):
    turns = iter(range(200))
    await together(make_service, lambda: next(turns, None) is None)


@pytest.mark.doses("seconds", 60)
async def test_two_owners_with_the_same_texts_never_meet_for_long(make_service, seconds):
    end = time.monotonic() + seconds
    await together(make_service, lambda: time.monotonic() > end)
