"""What a target may not do to the process that it runs in.

It may not end it as if all were well, go on in a copy, empty it, or keep it from ending: Python waits forever for a
thread, a child or a handler.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (registers first what joins its threads)
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from secrets import token_hex
from typing import Final

from memstory.pytest_plugin.options import ENDED
from memstory.running.supervision import end_marked

QUIET_EXIT = 3
"""The exit code of a process that its target ended with 0, pytest's own for an error that nobody foresaw."""

MARK: Final = "MEMSTORY_STARTED_BY"
"""The variable by which the children of a target are known, including those in other sessions."""

_GRACE_SECONDS = 8.0
_PAUSE_SECONDS = 0.25


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


@cache
def watch_the_end() -> None:
    """See to it that this process ends soon after its last handler began, and what targets started with it.

    To be called before the first target is loaded: handlers run in reverse order.
    """
    mark = os.environ[MARK] = f"{os.getpid()}-{token_hex(8)}"
    pid = os.getpid()
    is_leaving = threading.Event()
    is_joining = threading.Event()
    is_over = threading.Event()
    must_run = threading.Event()

    # Started now: Python 3.12 starts no thread once it waits for threads. In a thread, for a handler may hang.
    handlers = threading.Thread(target=_run_handlers, args=(must_run,), daemon=True)
    handlers.start()

    def run_handlers() -> None:
        must_run.set()
        handlers.join(_GRACE_SECONDS)

    def clear() -> None:
        if os.getpid() == pid:
            is_over.set()
            _say_ended(mark)

    atexit.register(clear)
    _before_threads_are_joined(is_joining.set)
    threading.Thread(target=_watch, args=(is_leaving, is_joining, is_over, run_handlers, mark), daemon=True).start()
    _ARMED.append(is_leaving.set)


def about_to_leave() -> None:
    """Register what tells the watch that Python has begun to leave: it runs before the handlers of targets."""
    while _ARMED:
        atexit.register(_ARMED.pop())


_ARMED: list[Callable[[], None]] = []


def _before_threads_are_joined(call: Callable[[], None]) -> None:
    # Calls run in reverse order. The one of concurrent.futures joins threads, so it must be registered before ours.
    threading._register_atexit(call)  # type: ignore[attr-defined]  # noqa: SLF001  (Python offers no other way)


def _run_handlers(must_run: threading.Event) -> None:
    must_run.wait()
    atexit._run_exitfuncs()  # noqa: SLF001  (Python offers no other way)


def _watch(
    is_leaving: threading.Event,
    is_joining: threading.Event,
    is_over: threading.Event,
    run_handlers: Callable[[], None],
    mark: str,
) -> None:
    waited = 0.0
    while waited < _GRACE_SECONDS:
        time.sleep(_PAUSE_SECONDS)
        if is_over.is_set():
            return
        if is_leaving.is_set() or is_joining.is_set():
            waited += _PAUSE_SECONDS
    code = int(ENDED[-1].exitstatus) if ENDED else 1
    names = [repr(one.name) for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
    what = f"thread {', '.join(names)}" if names else "what a target registered to run at exit"
    _say(f"memstory: {what} did not end; pytest leaves with exit code {code}")
    if not is_leaving.is_set():
        run_handlers()
    _say_ended(mark)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _say_ended(mark: str) -> None:
    for one in end_marked(f"{MARK}={mark}"):
        _say(f"memstory: ended what a target left running: {one}")


def _say(line: str) -> None:
    with suppress(OSError):  # A target may have closed it.
        os.write(2, f"{line}\n".encode(errors="replace"))
