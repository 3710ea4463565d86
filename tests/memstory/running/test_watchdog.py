"""Calls that block the process are interrupted; nothing else is touched."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest

from memstory.contract.errors import TargetError
from memstory.running.watchdog import interrupted_after


def test_what_blocks_is_interrupted_and_the_alarm_is_given_back():
    with pytest.raises(TargetError, match=r"blocked the whole process for 0\.05 s; --isolate"), interrupted_after(0.05):
        time.sleep(5)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_coroutine_that_blocks_its_loop_gets_the_error_itself():
    async def blocking():
        try:
            time.sleep(5)  # noqa: ASYNC251  (what a careless adapter does)
        except TargetError:
            return "told"
        return "never told"

    with interrupted_after(0.05):
        assert asyncio.run(blocking()) == "told"


def test_what_is_quick_leaves_no_alarm_behind():
    with interrupted_after(0.05):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_alarm_that_somebody_else_uses_is_left_alone():
    rung = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        with interrupted_after(0.02):
            time.sleep(0.1)
        signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert rung == [True]


def test_in_another_thread_it_does_nothing():
    done = []

    def work():
        with interrupted_after(0.01):
            time.sleep(0.05)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
