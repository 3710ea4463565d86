"""Processes that a target has started are found by a variable, whatever session they are in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.running.hosting.marked import end_marked

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc: no process is found here")
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def started(mark, words=SLEEPS):
    name, _, value = mark.partition("=")
    return subprocess.Popen(words, env={**os.environ, name: value}, start_new_session=True)  # noqa: S603  (our own)


def test_a_marked_process_in_another_session_is_ended_and_named_and_others_are_not():
    theirs, other = started("MARKED_BY=us"), started("MARKED_BY=us-not")
    try:
        (said,) = end_marked("MARKED_BY=us")
        assert said.startswith(f"process {theirs.pid} (")
        assert theirs.wait(10) == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_the_process_that_asks_is_not_ended():
    script = "from memstory.running.hosting.marked import end_marked; print(end_marked('MARKED_BY=me'))"
    words = [sys.executable, "-c", script]
    environ = {**os.environ, "MARKED_BY": "me"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)  # noqa: S603  (our own words)
    assert done.stdout == "[]\n"
