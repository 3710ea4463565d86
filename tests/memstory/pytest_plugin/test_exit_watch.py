"""A process ends, whatever a target left in it: real processes, for it is the end of one that is looked at."""

import subprocess
import sys

import pytest

START = """
import atexit, subprocess, sys, threading, time
from types import SimpleNamespace
from memstory.pytest_plugin import exit_watch
from memstory.pytest_plugin.options import ENDED

exit_watch._GRACE_SECONDS = 0.5
ENDED[:] = [SimpleNamespace(exitstatus=7)]
exit_watch.watch_the_end()
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


def ended(script):
    words = [sys.executable, "-c", f"{START}{script}exit_watch.about_to_leave()\nsys.exit(7)"]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603  (our own words)


def test_a_process_in_which_nothing_was_left_ends_by_itself_and_without_a_word():
    done = ended("")
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
    done = ended(left)
    assert done.returncode == 7
    assert done.stderr == f"memstory: {said} did not end; pytest leaves with exit code 7\n"


def test_the_handlers_at_exit_run_although_a_thread_does_not_end():
    assert ended(THREAD + OURS).stdout == "the report is whole\n"


def test_they_run_too_where_python_starts_no_thread_any_more():
    done = ended(NO_MORE_THREADS + THREAD + OURS)
    assert (done.returncode, done.stdout) == (7, "the report is whole\n")
    assert "thread 'left behind' did not end" in done.stderr


def test_a_child_in_a_session_of_its_own_is_ended_and_named():
    done = ended(CHILD)
    assert done.returncode == 7
    assert "memstory: ended what a target left running: process " in done.stderr
    assert "import time; time.sleep(600)" in done.stderr
