import asyncio
from datetime import timedelta

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import UnavailableError
from memstory_reference.systems.manager.memories import MemoryType

HOUR = timedelta(hours=1)


@pytest.fixture
def clock():
    return StoryClock()  # 2026-01-01 at noon


@pytest.fixture
def world(make_world, clock):
    return make_world(clock=clock)


@pytest.fixture
async def house(world):
    yield world.manager
    await world.manager.close()


async def pass_time(clock, house, duration):
    await clock.advance_to(clock.now() + duration, house.settle)


async def test_the_house_is_cleaned_at_the_start_and_every_hour_from_then(house, clock):
    await house.open()
    assert house.cleanup_runs == 1
    await pass_time(clock, house, HOUR - timedelta(seconds=1))
    assert house.cleanup_runs == 1
    await pass_time(clock, house, timedelta(seconds=1))
    assert house.cleanup_runs == 2
    await pass_time(clock, house, 10 * HOUR)
    assert house.cleanup_runs == 12


async def test_the_interval_is_a_setting(make_world, clock):
    house = make_world(clock=clock, cleanup_interval=60).manager
    await house.open()
    await pass_time(clock, house, HOUR)
    await house.close()
    assert house.cleanup_runs == 61


async def test_only_a_cleanup_that_removed_something_is_told(house, world, clock, caplog):
    caplog.set_level("INFO")
    await world.manager.store("ann", "today", MemoryType.CONTEXT)
    await house.open()
    await pass_time(clock, house, 24 * HOUR)
    assert [event["deleted"] for event in house.cleanups] == [1]
    assert [record.getMessage() for record in caplog.records] == ["memory_cleanup deleted=1"]


async def test_one_failed_cleanup_does_not_end_the_rhythm(house, world, clock, monkeypatch, caplog):
    await house.open()
    with monkeypatch.context() as patch:

        async def broken(_collection):
            raise UnavailableError("the store is away")

        patch.setattr(world.store, "owners", broken)
        await pass_time(clock, house, HOUR)
    assert (house.cleanup_runs, "memory_cleanup failed" in caplog.text) == (1, True)
    await pass_time(clock, house, HOUR)
    assert house.cleanup_runs == 2


async def test_a_start_that_fails_is_not_hidden(house, world, monkeypatch):
    async def broken(_collection):
        raise UnavailableError("the store is away")

    monkeypatch.setattr(world.store, "owners", broken)
    with pytest.raises(UnavailableError):
        await house.open()


async def test_after_the_stop_nothing_is_cleaned(house, clock):
    await house.open()
    await house.close()
    await pass_time(clock, house, 5 * HOUR)
    assert house.cleanup_runs == 1


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
    house = make_world(clock=clock).manager
    await house.open()
    for _ in range(20):
        await asyncio.sleep(0)
        await house.settle()
    await house.close()
    assert [(due - begun) / HOUR for due in clock.due] == [1, 11, 12, 13]
    assert house.cleanup_runs == 4
