"""One thread for a driver: calls go in order, and what goes wrong there is raised here."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import pytest

from memstory.targets.one_thread import OneThread


async def test_every_call_is_made_in_the_same_other_thread_and_in_order():
    thread, seen = OneThread("one"), []

    def note(number):
        seen.append(number)
        return threading.current_thread()

    threads = set(await asyncio.gather(*(thread.run(note, number) for number in range(5))))
    assert seen == [0, 1, 2, 3, 4]
    assert {one.name for one in threads} == {"one"}
    assert threading.current_thread() not in threads
    thread.close()


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3)])
async def test_what_a_call_raises_is_raised_where_it_is_waited_for_and_the_thread_goes_on(error):
    def broken():
        raise error

    thread = OneThread("one")
    with pytest.raises(type(error)) as raised:
        await thread.run(broken)
    assert raised.value is error
    assert await thread.run(len, "abc") == 3
    thread.close()


async def test_a_call_that_nobody_waits_for_any_more_harms_no_other():
    thread = OneThread("one")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await thread.run(time.sleep, 0.05)
    assert await thread.run(len, "abc") == 3
    thread.close()


@pytest.mark.parametrize("closed", [True, False])
async def test_the_thread_ends_when_it_is_closed_or_forgotten(closed):
    thread = OneThread("one")
    worker = await thread.run(threading.current_thread)
    if closed:
        thread.close()
    else:
        del thread
        gc.collect()
    worker.join(5)
    assert not worker.is_alive()
