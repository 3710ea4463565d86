import os
import subprocess
import sys
import tempfile

import pytest

from memstory.running.own_folder import OwnFolder, clear_dead_folders

DIES = "import os; from memstory.running.own_folder import OwnFolder; print(OwnFolder().path, flush=True); os._exit(0)"


@pytest.fixture(autouse=True)
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
