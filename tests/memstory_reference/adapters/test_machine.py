from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from memstory_reference.adapters import machine
from memstory_reference.adapters.machine import SystemClock


def test_the_present_is_aware_and_in_utc():
    assert SystemClock().now().tzinfo is UTC


async def test_a_sleeper_is_woken_when_its_moment_has_come_and_not_before(monkeypatch):
    monkeypatch.setattr(machine, "LONGEST_SLEEP_SECONDS", 0.01)
    clock = SystemClock()
    moment = clock.now() + timedelta(seconds=0.03)
    await clock.sleep_until(moment)
    assert clock.now() >= moment


def test_a_moment_that_is_past_is_not_waited_for():
    clock = SystemClock()
    waiting = clock.sleep_until(clock.now() - timedelta(days=1))
    with pytest.raises(StopIteration):  # it ends at its first step, without having given way
        waiting.send(None)
