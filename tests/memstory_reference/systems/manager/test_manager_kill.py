"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest

from memstory_reference.composition.vector_stores import open_store
from memstory_reference.systems.manager.manager import ManagerConfig, MemoryManager
from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.memories.rows import NewMemory

OWNERS = ("ana", "bob", "cid")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Noon:
    def now(self):
        return NOON


class NumberedEmbedder:
    """A vector from the number in a text; near numbers are not near."""

    model, dimension = "numbered", 16

    async def embed(self, texts, purpose):
        rows = [np.random.default_rng(int(text.rpartition(" ")[2])).standard_normal(16) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


async def opened(folder):
    embedder = NumberedEmbedder()
    store = await open_store(folder, embedder)
    manager = MemoryManager(config=ManagerConfig(), store=store, embedder=embedder, clock=Noon(), new_id=str)
    await manager.cleanup_expired()
    return store, manager


async def write(folder, done, acknowledge):
    """Write until killed: three facts and a context key a step; every fourth step forgets the oldest fact but one."""
    _, manager = await opened(folder)
    for step in count(min(done.values())):
        for owner in OWNERS:
            facts = [NewMemory(content=f"fact {3 * step + place}", metadata={"n": [step]}) for place in range(3)]
            await manager.store_many(owner, facts)
            await manager.set_context(owner, "s1", "step", f"step {step}")
            if step % 4 == 3:
                await forget(manager, owner, f"fact {3 * step - 3}")
            acknowledge(owner, step)


async def forget(manager, owner, content):
    for memory in await manager.memories(owner, [MemoryType.FACT]):
        if memory.content == content:
            await manager.forget(owner, memory.id)


def kept_after(steps):
    return {f"fact {n}" for n in range(3 * steps)} - {f"fact {3 * step - 3}" for step in range(3, steps, 4)}


async def verify(folder, done):
    store, manager = await opened(folder)
    for owner, steps in done.items():
        found = {one.content: one for one in await manager.memories(owner, [MemoryType.FACT])}
        # The step under way may be there or not; what it forgets may be gone.
        under_way = {f"fact {number}" for number in range(3 * steps - 3, 3 * steps + 3)}
        assert found.keys() - under_way == kept_after(steps) - under_way, (owner, steps, found.keys())
        assert not kept_after(steps) - found.keys() - {f"fact {3 * steps - 3}"}, (owner, steps)
        assert all(one.metadata == {"n": [int(text.split()[1]) // 3]} for text, one in found.items())
        value = await manager.get_context(owner, "s1", "step")
        assert value in ({None, "step 0"} if steps == 0 else {f"step {steps - 1}", f"step {steps}"}), (owner, value)
        for text in sorted(found)[-3:]:
            best = (await manager.search(owner, text, memory_type=MemoryType.FACT, min_score=0.99))[0]
            assert best.memory.content == text, (owner, text, best)
    await store.close()


@pytest.mark.doses("kills", 3, 150)
def test_nothing_acknowledged_is_lost_after_kills(kill_writers, tmp_path, kills):
    kill_writers(__file__, tmp_path / "store", kills)
