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

from memstory_reference.systems.layers.policy.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records import Arc, Fact, Layer, MemoryRecord
from memstory_reference.systems.layers.sqlite_store import SqliteStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VECTOR = np.array([1, 0], np.float32)


def record(identifier, content):
    return MemoryRecord(id=identifier, owner="ann", content=content, created_at=NOON, updated_at=NOON, vector=VECTOR)


def batch(step):
    facts = [
        Fact(category="note", subject="User", predicate="LIKES", object=f"word{step} {place}", evidence_quote="q")
        for place in range(5)
    ]
    return [record(f"f-{step}-{place}", fact) for place, fact in enumerate(facts)]


def opened(folder):
    return SqliteStore(folder / "memory.sqlite3", model="fixed-2")


async def write(folder, done, acknowledge):
    """Write until killed: each step one batch of five facts, and one session that ends with an arc and a fact."""
    store = opened(folder)
    for step in count(done):
        await store.aput_batch(batch(step))
        session = SessionMemoryBuffer(owner="ann", session=f"s-{step}", arc_id="a", started_at=NOON, last_at=NOON)
        await store.asave(session)
        left = [record(f"a-{step}", Arc(summary=f"arc{step}")), record(f"e-{step}", batch(step)[0].content)]
        await store.aend("ann", f"s-{step}", left)
        os.write(acknowledge, f"{step}\n".encode())


async def verify(folder, done):
    store = opened(folder)
    rows = {one.id for one in await store.alist("ann")}
    active = {one.session for one in await store.aactive("ann")}
    for step in range(done + 1):
        facts = {one for one in rows if one.startswith(f"f-{step}-")}
        ended = {f"a-{step}", f"e-{step}"} & rows
        assert len(facts) in (0, 5), (step, facts)
        assert len(ended) in (0, 2), (step, ended)
        assert not (ended and f"s-{step}" in active), step
        if step < done:
            assert len(facts) == 5, f"an acknowledged batch of step {step} is lost"
            assert ended, f"an acknowledged end of step {step} is lost"
        found = await store.asearch_tokens("ann", Layer.SEMANTIC, {f"word{step}"}, 10)
        assert {one.record.id for one in found} == facts | {one for one in ended if one[0] == "e"}
    assert len(await store.asearch_similar("ann", Layer.SEMANTIC, VECTOR, 100_000)) == sum(
        one[0] != "a" for one in rows
    )
    await store.aclose()


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


def kill_writers(folder, kills, seed=5):
    moments, done = random.Random(seed), 0  # noqa: S311  (moments, not secrets)
    for number in range(kills):
        reading, writing = os.pipe()
        child = in_child(lambda writing=writing, done=done: write(folder, done, writing))
        os.close(writing)
        with os.fdopen(reading) as lines:
            first = lines.readline()
            time.sleep(moments.uniform(0.0, 0.2))
            os.kill(child, signal.SIGKILL)
            for line in [first, *lines]:
                done = int(line) + 1
        os.waitpid(child, 0)
        _, status = os.waitpid(in_child(lambda done=done: verify(folder, done)), 0)
        if status:
            sys.exit(f"after kill {number + 1}, acknowledged {done}: the check failed")
    print(done)  # noqa: T201  (the answer to the test)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_after_kills_every_batch_and_every_end_is_there_whole_or_not_at_all(tmp_path, kills):
    command = [sys.executable, __file__, tmp_path / "store", str(kills)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= kills  # the writers did get on between kills


if __name__ == "__main__":
    kill_writers(Path(sys.argv[1]), int(sys.argv[2]))
