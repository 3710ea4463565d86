"""The folder of each process of a run, what a child reports there, and what it leaves behind."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from memstory.running.supervision import (
    ENDED,
    REPORT,
    SUPERVISOR,
    OwnFolder,
    clear_dead_folders,
    end_marked,
    messages_of,
    tell_supervisor,
)

DIES = "import os; from memstory.running.supervision import OwnFolder; print(OwnFolder().path, flush=True); os._exit(0)"
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc: no process is found here")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def made_long_ago(path):
    os.utime(path, (1, 1))


def test_the_folder_of_a_dead_process_is_cleared_by_the_next_run(temporary):
    subprocess.run([sys.executable, "-c", DIES], check=True, capture_output=True)  # noqa: S603  (our own)
    (left,) = temporary.iterdir()
    (left / "case").mkdir()
    made_long_ago(left)
    clear_dead_folders()
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_living_process_and_a_young_one_stay(temporary):
    held, young = OwnFolder(), temporary / "memstory-run-young"
    made_long_ago(held.path)
    young.mkdir()
    clear_dead_folders()
    assert sorted(temporary.iterdir()) == sorted([held.path, young])
    held.remove()
    assert list(temporary.iterdir()) == [young]


def test_locks_of_recordings_that_nobody_holds_are_cleared_and_links_are_not_followed(temporary):
    kept = temporary / "kept"
    kept.write_text("precious")
    made_long_ago(kept)
    (temporary / "memstory-link.lock").symlink_to(kept)
    (temporary / "memstory-0123.lock").touch()
    made_long_ago(temporary / "memstory-0123.lock")
    clear_dead_folders()
    assert sorted(path.name for path in temporary.iterdir()) == ["kept", "memstory-link.lock"]
    assert kept.read_text() == "precious"


def test_what_a_process_tells_is_told_to_the_one_that_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv(SUPERVISOR, str(tmp_path))
    tell_supervisor(REPORT, "reports/latest")
    tell_supervisor(ENDED)
    assert messages_of(os.getpid(), tmp_path) == {REPORT: "reports/latest", ENDED: ""}
    assert messages_of(os.getpid() + 1, tmp_path) == {}


@pytest.mark.parametrize("line", ["{}", "not JSON", "[1, 2]", "5", "[" * 5000, "[[], {}, []]", "\ufffd"])
def test_a_line_that_nobody_of_ours_wrote_tells_nothing(tmp_path, monkeypatch, line):
    monkeypatch.setenv(SUPERVISOR, str(tmp_path))
    tell_supervisor(REPORT, "reports/latest")
    (told,) = tmp_path.iterdir()
    with told.open("a") as file:
        file.write(f"{line}\n{json.dumps([os.getpid(), 'ended'])}\n")
    assert messages_of(os.getpid(), tmp_path) == {REPORT: "reports/latest"}


def started(mark, words=SLEEPS):
    name, _, value = mark.partition("=")
    return subprocess.Popen(words, env={**os.environ, name: value}, start_new_session=True)  # noqa: S603  (our own)


@needs_proc
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


@needs_proc
def test_the_process_that_asks_is_not_ended():
    script = "from memstory.running.supervision import end_marked; print(end_marked('MARKED_BY=me'))"
    words = [sys.executable, "-c", script]
    environ = {**os.environ, "MARKED_BY": "me"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)  # noqa: S603  (our own words)
    assert done.stdout == "[]\n"
