"""The memory when it gets rough: any argument to any method, and many tasks of two owners who say the same words."""

import asyncio
import itertools
import random
import string
import time
from zlib import crc32

import numpy as np
import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.adapters.vectors.chroma import open_chroma
from memstory_reference.systems.topics.config import TopicsConfig
from memstory_reference.systems.topics.memory_service import MemoryService

DIMENSION = 16
ODD = [None, True, 0, -1, 1.5, 10**19, 10**400, float("nan"), float("inf"), "", " ", "\0", "\ud800", "a\nb", b"x"]
ODD += [[], ["x"], {}, {"$ne": ""}, {5: 5}, {"timestamp_utc": "9999-12-31T23:59:59-12:00"}, {"query_id": "q"}, object()]
ODD += ["user.name", "user." + "x" * 500, "x" * 200_000, "tea", "Ünïcödé 🦀\u202e", "my PIN is 4711", {"a": "\udfff"}]
CALLS = [
    ("write_topic", 2), ("write_topics", 1), ("recall_topic", 1), ("topic_entry", 1), ("write_episodic", 2),
    ("write_engrams", 1), ("search_episodic", 2), ("list_topics", 1), ("list_engrams", 1), ("entry", 1), ("rewrite", 3),
    ("reward", 2), ("rate_turn", 2), ("held", 1), ("forget_told", 1), ("forget", 1), ("purge", 1), ("count", 1),
]  # fmt: skip


class HashedEmbedder:
    """Texts that share words are near."""

    model, dimension, profile = "hashed", DIMENSION, NO_PREFIXES

    async def embed(self, texts, _purpose):
        vectors = np.full((len(texts), DIMENSION), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, crc32(word.encode("utf-8", "surrogatepass")) % DIMENSION] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
async def service(tmp_path):
    numbers = itertools.count()
    store = await open_chroma(tmp_path, model="hashed", dimension=DIMENSION)
    yield MemoryService(
        config=TopicsConfig(),
        store=store,
        embedder=HashedEmbedder(),
        clock=SystemClock(),
        new_id=lambda: f"id{next(numbers)}",
    )
    await store.close()


def drawn(chance):
    if chance.random() < 0.2:
        return "".join(chance.choices(string.printable + "\ud800\0é", k=chance.randrange(12)))
    return chance.choice(ODD)


@pytest.mark.doses("calls", 2_000, 100_000)
async def test_any_argument_is_taken_or_refused_and_harms_no_other_memory(service, seed, calls):
    chance, refused = random.Random(seed), 0  # noqa: S311  (no secret)
    await service.write_topic("ann", "user.tea", "Darjeeling")
    kept = await service.write_episodic("ann", "the relay is Plimquart")
    for _ in range(calls):
        name, arguments = chance.choice(CALLS)
        owner = chance.choice(["bob", "eve", drawn(chance)])
        if owner != "ann":
            try:
                await getattr(service, name)(owner, *(drawn(chance) for _ in range(arguments)))
            except MemstoryError as error:
                refused += 1
                str(error).encode()
    assert calls // 4 < refused < calls
    assert await service.recall_topic("ann", "user.tea") == "Darjeeling"
    assert [one.id for one in await service.search_episodic("ann", "relay Plimquart")] == [kept]


@pytest.mark.doses("seconds", 1, 60)
async def test_fifty_tasks_of_two_owners_with_the_same_texts_never_cross(service, seconds):
    ids, ever, seen = ({"ann": set(), "bob": set()} for _ in range(3))
    end, turns = time.monotonic() + seconds, itertools.count()

    async def task(number):
        owner, other = ("ann", "bob") if number % 2 else ("bob", "ann")
        chance = random.Random(number)  # noqa: S311  (no secret)
        while time.monotonic() < end:
            next(turns)
            text = f"the relay is {chance.choice(['red', 'blue', 'green'])} {chance.randrange(9)}"
            mine = await service.write_episodic(owner, text)
            ids[owner].add(mine)
            ever[owner].add(mine)
            topic = await service.write_topic(owner, f"user.slot_{chance.randrange(5)}", f"{owner} {text}")
            assert topic.startswith(f"topic:{owner}:")
            found = await service.search_episodic(owner, text)
            seen[owner] |= {one.id for one in found}
            assert {one.content.split()[0] for one in await service.list_topics(owner)} == {owner}
            foreign = chance.choice([*ids[other]] or ["none"])
            assert await service.entry(owner, foreign) is None
            assert not await service.forget(owner, foreign)
            assert not await service.reward(owner, foreign, 1)
            assert await service.forget_told(owner, foreign) is None
            if chance.random() < 0.7:
                assert await service.forget(owner, mine)
                ids[owner].discard(mine)

    await asyncio.gather(*(task(number) for number in range(50)))
    assert next(turns) >= 50
    assert not ever["ann"] & ever["bob"]
    assert all(seen[owner] <= ever[owner] for owner in ever)
    for owner, kept in ids.items():
        assert {one.id for one in await service.list_engrams(owner)} == kept
