"""What a memory takes of the machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.running.footprint import footprint_of

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")


def test_files_of_all_folders_count_and_links_do_not(tmp_path):
    for name, size in (("a", 100_000), ("b/c", 50_000)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(size))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = footprint_of(tmp_path, tmp_path / "absent", process=None)
    assert 150_000 <= found.disk_bytes < 200_000
    assert (found.resident_bytes, found.processes) == (None, None)


@needs_proc
def test_a_process_counts_with_all_that_it_has_started(tmp_path):
    code = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print('up', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, start_new_session=True) as parent:  # noqa: S603
        parent.stdout.readline()
        found = footprint_of(tmp_path, process=parent.pid)
        os.killpg(parent.pid, 9)
    assert found.processes == 2
    assert found.resident_bytes > 3_000_000


@needs_proc
def test_a_process_that_has_ended_takes_nothing(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert footprint_of(tmp_path, process=ended.pid).resident_bytes == 0
