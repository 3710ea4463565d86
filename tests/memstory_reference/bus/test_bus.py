"""What is peculiar to the bus inside one process; all else is in tests/conformance/test_bus.py."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory_reference.bus import InProcessBus
from memstory_reference.bus.bus import MAX_PAYLOAD_CHARACTERS, pack, unpack
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON))
def test_a_json_object_comes_out_as_it_went_in(payload):
    assert unpack(pack(payload)) == payload


@pytest.mark.parametrize("payload", [None, [], "text", {"a": math.nan}, {"a": object()}, {"a": {1, 2}}, {"a": b"x"}])
def test_what_is_no_json_object_is_refused(payload):
    with pytest.raises(InputError, match="bus:"):
        pack(payload)


def test_a_payload_that_is_too_deep_or_holds_itself_is_refused():
    circle = {}
    circle["self"] = circle
    deep = {}
    for _ in range(100_000):
        deep = {"d": deep}
    for payload in (circle, deep):
        with pytest.raises(InputError, match="not JSON"):
            pack(payload)


def test_a_payload_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="at most"):
        pack({"a": "x" * MAX_PAYLOAD_CHARACTERS})


def envelope(subject, payload=None):
    return Envelope(subject=subject, payload=payload or {}, publisher="test", owner="ann")


async def test_the_log_keeps_the_latest_messages_and_numbers_them(monkeypatch):
    monkeypatch.setattr("memstory_reference.bus.bus.LOGGED_MESSAGES", 3)
    monkeypatch.setattr("memstory_reference.bus.bus.LOGGED_CHARACTERS", 20)
    bus = InProcessBus()
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
    bus, gate = InProcessBus(most_deliveries=2), asyncio.Event()

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
