import asyncio
import threading
from contextlib import contextmanager, suppress

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.lane import SerialThread


async def test_calls_take_turns_even_when_a_caller_goes_away():
    lane, entered, leave, order = SerialThread("here"), threading.Event(), threading.Event(), []

    def first():
        entered.set()
        leave.wait(5)
        order.append("first")

    task = asyncio.create_task(lane.run(first))
    await asyncio.to_thread(entered.wait, 5)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    second = asyncio.create_task(lane.run(order.append, "second"))
    await asyncio.sleep(0)
    assert order == []
    leave.set()
    await second
    assert order == ["first", "second"]


async def test_closing_waits_for_what_was_asked_before_and_refuses_what_comes_after():
    lane, order = SerialThread("here"), []
    waiting = asyncio.create_task(lane.run(order.append, "call"))
    await asyncio.sleep(0)
    await lane.close(lambda: order.append("closed"))
    await lane.close(lambda: order.append("closed again"))
    await waiting
    with pytest.raises(UnavailableError, match="the store at here was closed; open it again"):
        await lane.run(order.append, "late")
    assert order == ["call", "closed"]


async def test_errors_of_the_library_are_translated():
    @contextmanager
    def translated():
        try:
            yield
        except ZeroDivisionError as problem:
            raise UnavailableError("divided") from problem

    with pytest.raises(UnavailableError, match="divided"):
        await SerialThread("here", translated).run(lambda: 1 / 0)
