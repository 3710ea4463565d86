"""What a target may not do to the process that it runs in: end it as if all were well, go on in a copy, or empty it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

QUIET_EXIT = 3
"""The exit code of a process that its target ended with 0, pytest's own for an error that nobody foresaw."""


@contextmanager
def no_quiet_exit() -> Iterator[None]:
    """Make `os._exit(0)` of this process 3, and end a fork of it that comes to the end of the block."""
    pid, leave = os.getpid(), os._exit

    def leave_with(code: int) -> None:
        leave(code if os.getpid() != pid else code or QUIET_EXIT)

    os._exit = leave_with  # type: ignore[assignment]  # it does not return either
    try:
        yield
    finally:
        if os.getpid() != pid:
            leave(QUIET_EXIT)
        os._exit = leave


@contextmanager
def nothing_forgotten() -> Iterator[None]:
    """Put back what the block takes out of the environment and of the path for imports; what it adds stays."""
    environment, path = dict(os.environ), list(sys.path)
    try:
        yield
    finally:
        for name in environment.keys() - os.environ.keys():
            os.environ[name] = environment[name]
        if not set(path) <= set(sys.path):
            sys.path[:] = [*path, *(place for place in sys.path if place not in path)]


def interrupt_on_termination() -> Callable[[], None]:
    """Let SIGTERM be as good as Ctrl-C, which leaves a report; return what undoes it."""
    is_free = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not is_free or threading.current_thread() is not threading.main_thread():
        return lambda: None

    def interrupt(_number: int, _frame: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell script has it so behind `&`
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, interrupt)

    def undo() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    return undo


def end_undisturbed() -> Callable[[], None]:
    """Answer Ctrl-C from now on with a line: a second one must not cost the report; return what undoes it."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.signal(signal.SIGINT, _say_wait)

    def undo() -> None:
        signal.signal(signal.SIGINT, before)

    return undo


def _say_wait(_number: int, _frame: object) -> None:
    with suppress(OSError):  # A target may have closed it.
        os.write(2, b"\nmemstory: the report is being written and targets are stopped; wait, or end it with Ctrl-\\\n")
