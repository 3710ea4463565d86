"""Time that only moves when the story says so, and a stopwatch for real time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from memstory.contract.clock import STORY_START, Stopwatch, StoryClock

HOUR = timedelta(hours=1)


async def test_sleepers_wake_in_time_order_each_at_its_own_time():
    clock, woken = StoryClock(), []

    async def sleep(hours):
        await clock.sleep_until(STORY_START + hours * HOUR)
        woken.append((hours, clock.now() - STORY_START))

    tasks = [asyncio.create_task(sleep(hours)) for hours in (2, 1, 9)]
    await asyncio.sleep(0)
    await clock.advance_to(STORY_START + 3 * HOUR)
    assert woken == [(1, HOUR), (2, 2 * HOUR)]
    assert clock.now() == STORY_START + 3 * HOUR
    tasks[2].cancel()


async def test_a_task_that_sleeps_again_wakes_as_often_as_it_is_due():
    clock, runs = StoryClock(), []

    async def hourly():
        while True:
            await clock.sleep_until(clock.now() + HOUR)
            runs.append(clock.now() - STORY_START)

    task = asyncio.create_task(hourly())
    await asyncio.sleep(0)
    await clock.advance_to(STORY_START + 3 * HOUR)
    assert runs == [HOUR, 2 * HOUR, 3 * HOUR]
    task.cancel()


async def test_slow_work_is_done_before_the_next_is_due_where_it_can_be_waited_for():
    clock, seen, busy = StoryClock(), [], asyncio.Event()

    async def cleanup():
        for _ in range(2):
            await clock.sleep_until(clock.now() + HOUR)
            busy.clear()
            await asyncio.to_thread(lambda: None)
            seen.append(clock.now() - STORY_START)
            busy.set()

    async def settle():
        await busy.wait()
        await asyncio.sleep(0)

    task = asyncio.create_task(cleanup())
    await asyncio.sleep(0)
    await clock.advance_to(STORY_START + 5 * HOUR, settle)
    assert seen == [HOUR, 2 * HOUR]
    await task


async def test_the_past_needs_no_waiting_and_a_cancelled_sleeper_harms_nobody():
    clock = StoryClock()
    await clock.sleep_until(STORY_START)
    task = asyncio.create_task(clock.sleep_until(STORY_START + HOUR))
    await asyncio.sleep(0)
    task.cancel()
    await clock.advance_to(STORY_START + 2 * HOUR)
    assert clock.now() == STORY_START + 2 * HOUR


class Ticks:
    """Stands for `perf_counter`, one second a call."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


def test_a_stopwatch_counts_what_runs_at_once_once(monkeypatch):
    monkeypatch.setattr("memstory.contract.clock.perf_counter", Ticks())
    watch = Stopwatch()
    with watch.running(), watch.running():
        pass
    assert watch.seconds == 1.0
    with watch.running():
        pass
    assert watch.seconds == 2.0


def test_a_stopwatch_that_runs_can_be_read(monkeypatch):
    monkeypatch.setattr("memstory.contract.clock.perf_counter", Ticks())
    watch = Stopwatch()
    assert watch.seconds == 0.0
    with watch.running():
        assert watch.seconds == 1.0
