"""SIGKILL at random moments of writing. Run as a script, this file is the process that forks and kills the writers."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from memstory_reference import bootstrap
from memstory_reference.systems.manager.manager import ManagerConfig, MemoryManager
from memstory_reference.systems.manager.memory import MemoryType
from memstory_reference.systems.manager.rows import NewMemory

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
    store = await bootstrap.open_store(folder, embedder)
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
            os.write(acknowledge, f"{owner} {step}\n".encode())


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


def in_child(work):
    """Fork, so that slow imports are paid once; this process never opens a store of its own."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())
        except BaseException:  # noqa: BLE001  (a forked child must not go on as its parent)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def kill_writers(folder, kills, seed=7):
    moments, done = random.Random(seed), dict.fromkeys(OWNERS, 0)  # noqa: S311  (moments, not secrets)
    acknowledged = 0
    for number in range(kills):
        reading, writing = os.pipe()
        child = in_child(lambda writing=writing: write(folder, done, writing))
        os.close(writing)
        with os.fdopen(reading) as lines:
            first = lines.readline()
            time.sleep(moments.uniform(0.0, 0.3))
            os.kill(child, signal.SIGKILL)
            for line in [first, *lines]:
                owner, step = line.split()
                done[owner] = int(step) + 1
                acknowledged += 1
        os.waitpid(child, 0)
        _, status = os.waitpid(in_child(lambda: verify(folder, done)), 0)
        if status:
            sys.exit(f"after kill {number + 1}, acknowledged {done}: the check failed")
    print(acknowledged)  # noqa: T201  (the answer to the test)


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_after_kills(tmp_path, kills):
    command = [sys.executable, __file__, tmp_path / "store", str(kills)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= kills  # no writer was killed before it wrote


if __name__ == "__main__":
    kill_writers(Path(sys.argv[1]), int(sys.argv[2]))
