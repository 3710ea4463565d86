"""The end of a process for which a thread, a child or a handler of a target would make Python wait forever."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (registers first what joins its threads)
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from secrets import token_hex
from typing import Final

from memstory.pytest_plugin.options import ENDED
from memstory.running.supervision import end_marked

MARK: Final = "MEMSTORY_STARTED_BY"
"""The variable by which the children of a target are known, including those in other sessions."""

_GRACE_SECONDS = 8.0
_PAUSE_SECONDS = 0.25


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
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def _say_ended(mark: str) -> None:
    for one in end_marked(f"{MARK}={mark}"):
        _say(f"memstory: ended what a target left running: {one}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # A target may have closed it.
        os.write(2, f"{line}\n".encode(errors="replace"))
