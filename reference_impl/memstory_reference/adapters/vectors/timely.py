"""Calls of a library that may never return: made in their own thread, and given up after a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from memstory.contract.errors import UnavailableError

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 10.0


class StuckError(UnavailableError):
    """A call did not return in time; nothing more is asked of this library."""


class TimedThread:
    """Runs blocking calls one after another, each at most `SECONDS`; the process may end while one is stuck."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_stuck = False
        # A daemon: the interpreter does not wait for it at the end.
        threading.Thread(target=self._work, name=f"timely {what}", daemon=True).start()

    def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns; StuckError if it did not return in time, or one before it did not."""
        if not self._is_stuck:
            future: Future[T] = Future()
            self._calls.put(lambda: _fill(future, call, *args, **kwargs))
            try:
                return future.result(SECONDS)
            except NotYet:
                if future.done():
                    raise  # the call itself timed out
                self._is_stuck = True
        raise StuckError(f"{self._what} did not return within {SECONDS:g} s")

    def close(self) -> None:
        """End the thread once its calls are done."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _fill(future: Future[T], call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        future.set_result(call(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001  (it is raised where the call was made)
        future.set_exception(error)
