"""What a target may not do to the process that it runs in."""

import os
import signal
import sys

import pytest

from memstory.pytest_plugin.process_guard import (
    QUIET_EXIT,
    end_undisturbed,
    interrupt_on_termination,
    no_quiet_exit,
    nothing_forgotten,
)


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
