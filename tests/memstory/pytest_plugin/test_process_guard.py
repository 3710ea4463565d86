"""What a target may not do to the process that it runs in; how that ends is looked at in real processes."""

import os
import signal
import subprocess
import sys

import pytest

from memstory.pytest_plugin.process_guard import (
    QUIET_EXIT,
    end_undisturbed,
    interrupt_on_termination,
    no_quiet_exit,
    nothing_forgotten,
)

START = """
import atexit, subprocess, sys, threading, time
from types import SimpleNamespace
from memstory.pytest_plugin import process_guard
from memstory.pytest_plugin.options import ENDED

process_guard._GRACE_SECONDS = 0.5
ENDED[:] = [SimpleNamespace(exitstatus=7)]
process_guard.watch_the_end()
"""
THREAD = "threading.Thread(target=time.sleep, args=(600,), name='left behind').start()\n"
POOL = "from concurrent.futures import ThreadPoolExecutor as P; P(thread_name_prefix='pool').submit(time.sleep, 600)\n"
HANDLER = "atexit.register(time.sleep, 600)\n"
CHILD = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
OURS = "atexit.register(print, 'the report is whole')\n"
# As Python 3.12 does: from the moment it waits for threads, none can be started.
NO_MORE_THREADS = """
def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")

threading._register_atexit(setattr, threading.Thread, "start", refuse)
"""


def ended(child):
    """Return the exit code of a fork that runs `child`."""
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(("code", "seen"), [(0, QUIET_EXIT), (5, 5)])
def test_a_quiet_exit_is_none_and_a_loud_one_keeps_its_code(code, seen):
    def child():
        with no_quiet_exit():
            os._exit(code)

    assert ended(child) == seen


def test_after_the_block_a_process_may_leave_as_it_likes():
    def child():
        with no_quiet_exit():
            pass
        os._exit(0)

    assert ended(child) == 0


def test_a_fork_that_comes_to_the_end_of_the_block_ends_there():
    def child():
        with no_quiet_exit():
            copy = os.fork()
        # Only the one that forked is here.
        os._exit(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) + 10)

    assert ended(child) == QUIET_EXIT + 10


def test_what_is_taken_out_of_the_environment_and_the_path_is_put_back_and_what_is_added_stays(monkeypatch):
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setattr(sys, "path", ["here", "there"])
    with nothing_forgotten():
        os.environ.pop("KEPT")
        monkeypatch.setenv("ADDED", "2")
        sys.path[:] = ["new"]
    assert (os.environ["KEPT"], os.environ["ADDED"], sys.path) == ("1", "2", ["here", "there", "new"])


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_termination_is_an_interruption_until_it_is_undone(handler):
    before = signal.signal(signal.SIGINT, handler)
    undo = interrupt_on_termination()
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        undo()
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_somebody_else_for_termination_stays():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        interrupt_on_termination()()
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [1]


@pytest.mark.repeats
def test_an_interruption_of_the_end_is_answered_by_a_line_until_that_is_undone(capfd):
    undo = end_undisturbed()
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        undo()
    assert capfd.readouterr().err.startswith("\nmemstory: the report is being written")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def end_of(script):
    words = [sys.executable, "-c", f"{START}{script}process_guard.about_to_leave()\nsys.exit(7)"]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603  (our own words)


def test_a_process_in_which_nothing_was_left_ends_by_itself_and_without_a_word():
    done = end_of("")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("left", "said"),
    [
        (THREAD, "thread 'left behind'"),
        (POOL, "thread 'pool_0'"),
        (HANDLER, "what a target registered to run at exit"),
    ],
)
def test_what_would_never_end_is_named_and_the_exit_code_is_that_of_pytest(left, said):
    done = end_of(left)
    assert done.returncode == 7
    assert done.stderr == f"memstory: {said} did not end; pytest leaves with exit code 7\n"


def test_the_handlers_at_exit_run_although_a_thread_does_not_end():
    assert end_of(THREAD + OURS).stdout == "the report is whole\n"


def test_they_run_too_where_python_starts_no_thread_any_more():
    done = end_of(NO_MORE_THREADS + THREAD + OURS)
    assert (done.returncode, done.stdout) == (7, "the report is whole\n")
    assert "thread 'left behind' did not end" in done.stderr


def test_a_child_in_a_session_of_its_own_is_ended_and_named():
    done = end_of(CHILD)
    assert done.returncode == 7
    assert "memstory: ended what a target left running: process " in done.stderr
    assert "import time; time.sleep(600)" in done.stderr
