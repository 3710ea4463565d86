"""The memory when it gets rough: any argument to any method, and many tasks of two owners who say the same words."""

import asyncio
import random
import time
from itertools import count

import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.memory_tools import TurnsTools
from memstory_reference.systems.turns.turn import NewTurn

OWNERS = ("ann", "bob")


@pytest.mark.doses("calls", 2_000, 100_000)
async def test_any_argument_is_taken_or_refused_and_harms_no_other_memory(memory, chance, calls):
    (kept,) = await memory.add("ann", [NewTurn(text="the relay is Plimquart")])

    def one():
        return chance.one("a kettle", "id0", "note", 3)

    def new():
        return NewTurn(
            text=one(), kind=chance.one("note", None), key=chance.one("k", None), speaker=chance.one("Bo", None)
        )

    made = (
        lambda owner: memory.add(owner, [new() for _ in range(chance.random.randrange(3))]),
        lambda owner: memory.update(owner, one(), new()),
        lambda owner: memory.search(owner, one(), one()),
        lambda owner: memory.search(owner, one(), conditions=Conditions(kinds=one(), where=one(), session=one())),
        lambda owner: memory.context(owner, one(), tokens=one()),
        lambda owner: memory.get(owner, one()),
        lambda owner: memory.by_key(owner, one()),
        lambda owner: memory.delete(owner, [one()]),
        lambda owner: memory.forget_session(owner, one()),
        lambda owner: memory.listed(owner, limit=one()),
        lambda owner: TurnsTools(memory, owner).call("recall", {"query": one(), "limit": one(), "since": one()}),
        lambda owner: TurnsTools(memory, owner).call("remember", {"text": one(), "said_at": one()}),
        lambda owner: TurnsTools(memory, owner).call("forget", {"id": one()}),
    )
    refused = 0
    for _ in range(calls):
        owner = chance.one("bob", "eve")
        try:
            await chance.random.choice(made)(owner)
        except MemstoryError as error:
            refused += 1
            str(error).encode()
    assert 0 < refused < calls
    assert [found.turn.id for found in await memory.search("ann", "relay Plimquart")] == [kept.turn.id]


@pytest.mark.doses("seconds", 1, 60)
async def test_fifty_tasks_of_two_owners_with_the_same_texts_never_cross(memory, seconds):
    made, end = {owner: set() for owner in OWNERS}, time.monotonic() + seconds

    async def live(number):
        owner, other = OWNERS[number % 2], OWNERS[1 - number % 2]
        draw = random.Random(number)  # noqa: S311  (chance, no secret)
        for step in count():
            if step and time.monotonic() > end:
                break
            await asyncio.sleep(0)
            text = f"kettle {draw.randrange(20)} is mended"
            (stored,) = await memory.add(owner, [NewTurn(text=text, key=f"k{draw.randrange(30)}", session="s")])
            made[owner].add(stored.turn.id)
            found = [one.turn.id for one in await memory.search(owner, text, 50)]
            assert {*found, *(one.id for one in await memory.listed(owner))} <= made[owner] | {stored.turn.id}
            foreign = next(iter(made[other]), None)
            if foreign is not None:
                assert await memory.get(owner, foreign) is None
                assert await memory.update(owner, foreign, NewTurn(text="taken over")) is None
                assert await memory.delete(owner, [foreign]) == []
            if draw.random() < 0.1:
                await memory.delete(owner, [stored.turn.id])

    await asyncio.gather(*(live(number) for number in range(50)))
    assert made["ann"].isdisjoint(made["bob"])
    for owner in OWNERS:
        texts = [one.text for one in await memory.listed(owner)]
        assert texts
        assert "taken over" not in texts
