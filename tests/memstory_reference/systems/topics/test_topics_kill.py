"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

import os
from itertools import count

import numpy as np
import pytest

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.systems.topics.config import TopicsConfig
from memstory_reference.systems.topics.memory_service import MemoryService

OWNERS = ("ana", "bob", "cid")
SLOTS = 5


class NumberedEmbedder:
    """A vector from the number in a text; near numbers are not near."""

    model, dimension, profile = "numbered", 16, NO_PREFIXES

    async def embed(self, texts, purpose):
        rows = [np.random.default_rng(int(text.rpartition(" ")[2])).standard_normal(16) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


async def opened(folder):
    embedder, run, numbers = NumberedEmbedder(), os.urandom(8).hex(), count()
    store = await open_store(folder, embedder)
    service = MemoryService(
        config=TopicsConfig(),
        store=store,
        embedder=embedder,
        clock=SystemClock(),
        new_id=lambda: f"{run}-{next(numbers)}",
    )
    return store, service


async def write(folder, done, acknowledge):
    """Write until killed: a turn and its topic a step; every third step forgets the topic and the turns about it."""
    _, service = await opened(folder)
    for later in count():
        for owner in OWNERS:
            step = done[owner] + later
            topic = f"user.slot_{step % SLOTS}"
            entry_id = await service.write_topic(owner, topic, f"value {step}")
            await service.write_turn(owner, f"turn {step}", {}, is_recall=False, topics=[topic])
            if step % 3 == 2:
                await service.forget_told(owner, entry_id)
            acknowledge(owner, step)


def kept_after(steps):
    """Return the value of each topic, and the turns: a turn goes with the topic that it saved."""
    topics, turns = dict[str, int](), dict[int, str]()
    for step in range(steps):
        topic = f"user.slot_{step % SLOTS}"
        topics[topic], turns[step] = step, topic
        if step % 3 == 2:
            del topics[topic]
            turns = {one: about for one, about in turns.items() if about != topic}
    return topics, set(turns)


async def verify(folder, done):
    store, service = await opened(folder)
    for owner, steps in done.items():
        topics = {one.topic: int(one.content.split()[1]) for one in await service.list_topics(owner)}
        engrams = await service.list_engrams(owner)
        turns = {int(one.content.split()[1]) for one in engrams}
        # The step under way may be there or not, in part; one that a killed writer began may be told twice.
        (before, told), (after, told_after), slot = (
            kept_after(steps),
            kept_after(steps + 1),
            f"user.slot_{steps % SLOTS}",
        )
        assert topics.pop(slot, None) in (before.pop(slot, None), steps, after.get(slot)), (owner, steps)
        assert topics == before, (owner, steps)
        assert told & told_after <= turns <= told | told_after | {steps}, (owner, steps, turns)
        for one in engrams[-3:]:
            assert (await service.search_episodic(owner, one.content, 1))[0].content == one.content, (owner, one)
    await store.close()


@pytest.mark.doses("kills", 3, 100)
def test_no_kill_loses_a_topic_or_an_engram_that_was_acknowledged(kill_writers, tmp_path, kills):
    kill_writers(__file__, tmp_path / "store", kills)
