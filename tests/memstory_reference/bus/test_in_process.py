"""What is peculiar to the bus inside one process; all else is in tests/conformance/test_bus.py."""

import asyncio

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.bus import BusLimits, InProcessBus
from memstory_reference.ports import Envelope


def envelope(subject, payload=None):
    return Envelope(subject=subject, payload=payload or {}, publisher="test", owner="ann")


async def test_the_log_keeps_the_latest_messages_and_numbers_them():
    bus = InProcessBus(BusLimits(logged_messages=3, logged_characters=20))
    for n in range(5):
        await bus.publish(envelope("a", {"n": n}))
    await bus.publish(envelope("a", {"text": "x" * 30}))
    assert [(one.number, one.payload) for one in bus.log()] == [
        (4, {"n": 3}),
        (5, {"n": 4}),
        (6, {"characters_of_json": 41}),
    ]
    assert [one.number for one in bus.log(since=5)] == [6]
    assert bus.published == 6


async def test_a_flood_of_deliveries_is_refused_before_memory_runs_out():
    bus, gate = InProcessBus(BusLimits(deliveries=2)), asyncio.Event()

    async def blocked(_):
        await gate.wait()

    await bus.subscribe("a", blocked, name="blocked")
    await bus.publish(envelope("a"))
    await bus.publish(envelope("a"))
    with pytest.raises(UnavailableError, match="2 deliveries"):
        await bus.publish(envelope("a"))
    gate.set()
    await bus.settle()
    await bus.publish(envelope("a"))
    await bus.settle()
