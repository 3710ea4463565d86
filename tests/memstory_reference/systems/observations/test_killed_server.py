"""SIGKILL of the Postgres server while runs are stored and forgotten: none that was acknowledged is lost or back."""

from contextlib import asynccontextmanager
from itertools import count

import pytest

from memstory.contract.target import Ref, Scope
from memstory_reference import AsyncMemory
from memstory_reference.composition.systems import SYSTEMS

ANN = Scope(user="ann")


@asynccontextmanager
async def opened(url):
    system = SYSTEMS["observations"]
    settings = system.settings(None, {"path": url, "embedding_model": "words"}, "test")
    memory = AsyncMemory(memory=await system.open(settings), owner="ann")
    yield memory
    await memory.close()


@pytest.mark.doses("kills", 2, 50)
async def test_stored_and_forgotten_runs_outlive_a_server_that_is_killed(killed_postgres, kills):
    steps, stored, forgotten, asked_to_forget = count(), set(), set(), set()

    async def write(memory):
        for step in steps:
            await memory.add(f"Bees hum word{step}.", key=f"run {step}")
            stored.add(step)
            if step % 3 == 2:
                asked_to_forget.add(step)
                await memory.memory.delete(Ref(key=f"run {step}"), ANN)
                forgotten.add(step)

    async with killed_postgres(kills, opened, write, stored) as memory:
        kept = {int(hit.key.removeprefix("run ")) for hit in await memory.list()}
        for step in stored - asked_to_forget:
            assert f"run {step}" in {hit.key for hit in await memory.search(f"word{step}")}
        status = await memory.memory.inspect("status", {}, ANN)
    assert status == {"observations": len(kept), "unreadable": 0, "vectors": len(kept), "pending": 0}
    assert stored - asked_to_forget <= kept
    assert not forgotten & kept
    assert len(kept - stored) <= kills, "those that were under way"
