import asyncio
from datetime import timedelta

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import UnavailableError
from memstory_reference.systems.manager.memories import MemoryType
from memstory_reference.systems.manager.memory import Housekeeping

HOUR = timedelta(hours=1)


@pytest.fixture
def clock():
    return StoryClock()  # 2026-01-01 at noon


@pytest.fixture
def world(make_world, clock):
    return make_world(clock=clock)


@pytest.fixture
async def house(world):
    house = Housekeeping(world.manager)
    yield house
    await house.stop()


async def pass_time(clock, house, duration):
    await clock.advance_to(clock.now() + duration, house.settle)


async def test_the_house_is_cleaned_at_the_start_and_every_hour_from_then(house, clock):
    await house.start()
    assert house.runs == 1
    await pass_time(clock, house, HOUR - timedelta(seconds=1))
    assert house.runs == 1
    await pass_time(clock, house, timedelta(seconds=1))
    assert house.runs == 2
    await pass_time(clock, house, 10 * HOUR)
    assert house.runs == 12


async def test_the_interval_is_a_setting(make_world, clock):
    house = Housekeeping(make_world(clock=clock, cleanup_interval=60).manager)
    await house.start()
    await pass_time(clock, house, HOUR)
    await house.stop()
    assert house.runs == 61


async def test_only_a_cleanup_that_removed_something_is_told(house, world, clock, caplog):
    caplog.set_level("INFO")
    await world.manager.store("ann", "today", MemoryType.CONTEXT)
    await house.start()
    await pass_time(clock, house, 24 * HOUR)
    assert [event["deleted"] for event in house.events] == [1]
    assert [record.getMessage() for record in caplog.records] == ["memory_cleanup deleted=1"]


async def test_one_failed_cleanup_does_not_end_the_rhythm(house, world, clock, monkeypatch, caplog):
    await house.start()
    with monkeypatch.context() as patch:

        async def broken(_collection):
            raise UnavailableError("the store is away")

        patch.setattr(world.store, "owners", broken)
        await pass_time(clock, house, HOUR)
    assert (house.runs, "memory_cleanup failed" in caplog.text) == (1, True)
    await pass_time(clock, house, HOUR)
    assert house.runs == 2


async def test_a_start_that_fails_is_not_hidden(house, world, monkeypatch):
    async def broken(_collection):
        raise UnavailableError("the store is away")

    monkeypatch.setattr(world.store, "owners", broken)
    with pytest.raises(UnavailableError):
        await house.start()


async def test_after_the_stop_nothing_is_cleaned(house, clock):
    await house.start()
    await house.stop()
    await pass_time(clock, house, 5 * HOUR)
    assert house.runs == 1


class SleptThrough:
    """A machine's clock: each sleep that is over was as long as the test says, such as a night with the lid shut."""

    def __init__(self, begun, *hours):
        self.moment, self.hours, self.due = begun, [*hours], []

    def now(self):
        return self.moment

    async def sleep_until(self, moment):
        self.due.append(moment)
        if not self.hours:
            await asyncio.Event().wait()
        self.moment += self.hours.pop(0) * HOUR


async def test_hours_that_were_slept_through_are_not_made_up_for(make_world):
    begun = make_world().clock.now()
    clock = SleptThrough(begun, 10.5, 0.5, 1)
    house = Housekeeping(make_world(clock=clock).manager)
    await house.start()
    for _ in range(20):
        await asyncio.sleep(0)
        await house.settle()
    await house.stop()
    assert [(due - begun) / HOUR for due in clock.due] == [1, 11, 12, 13]
    assert house.runs == 4
