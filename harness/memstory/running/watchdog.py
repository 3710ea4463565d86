"""Ends calls that block the whole process, because the event loop's time limits cannot."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from memstory.contract.errors import TargetError

_AGAIN_SECONDS = 10.0


@contextmanager
def interrupted_after(seconds: float) -> Iterator[Callable[[], None]]:
    """Raise TargetError in whatever blocks the main thread once `seconds` are over, and again in what then blocks.

    It reaches all that Python can interrupt: sleeping, waiting, input and output, but no endless loop of C code.
    What is yielded starts the time again. Outside of the main thread, and where something else uses the alarm, nothing
    happens.
    """
    alarm = getattr(signal, "SIGALRM", None)
    is_free = alarm is not None and signal.getsignal(alarm) is signal.SIG_DFL
    if alarm is None or not is_free or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TargetError(
            f"the target blocked the whole process for {seconds:g} s; --isolate runs it in its own process"
        )

    signal.signal(alarm, ring)

    def start() -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)

    start()
    try:
        yield start
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(alarm, signal.SIG_DFL)
