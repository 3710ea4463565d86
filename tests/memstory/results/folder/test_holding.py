import shutil
import subprocess
import sys
import threading

import pytest

from memstory.contract.errors import SetupError
from memstory.reporting.writing import begin_reports, report_from_spool
from memstory.results.folder.holding import LOCK_NAME, Hold

HOLDER = """
import sys, time
from pathlib import Path
from memstory.results.folder.holding import Hold
Hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    command = [sys.executable, "-c", HOLDER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  (our own)
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_folder_in_use_is_refused_with_the_process_that_has_it(tmp_path, holder):
    with pytest.raises(SetupError, match=rf"in use: another run \(process {holder.pid}\).*name another folder"):
        begin_reports(tmp_path)
    with pytest.raises(SetupError, match="in use"):
        report_from_spool(tmp_path)


def test_a_killed_holder_lets_go(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert (tmp_path / LOCK_NAME).exists()
    begin_reports(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_let_go_is_free_and_holds_no_lock_file(tmp_path):
    first = Hold(tmp_path)
    with pytest.raises(SetupError):
        Hold(tmp_path)
    first.release()
    first.release()
    Hold(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_on_a_file_that_was_taken_away_does_not_count(tmp_path):
    first = Hold(tmp_path)
    (tmp_path / LOCK_NAME).unlink()
    second = Hold(tmp_path)  # its own file, which others see
    with pytest.raises(SetupError):
        Hold(tmp_path)
    second.release()
    first.release()


def test_a_folder_that_is_let_go_in_time_is_waited_for(tmp_path):
    first = Hold(tmp_path)
    threading.Timer(0.05, first.release).start()
    Hold(tmp_path, patience_seconds=60).release()
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_costs_nobody_the_end_of_the_run(tmp_path):
    folder = tmp_path / "latest"
    folder.mkdir()
    held = Hold(folder)
    shutil.rmtree(folder)
    folder.write_text("mine")
    held.release()
    assert folder.read_text() == "mine"


def test_a_lock_that_is_a_link_to_somebodys_file_is_refused_and_the_file_kept(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious data")
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / LOCK_NAME).symlink_to(precious)
    with pytest.raises(SetupError, match="is a symbolic link, which no run leaves there: remove it"):
        Hold(folder)
    assert precious.read_text() == "precious data"


NO_ROOM = """
import resource, sys
from pathlib import Path
from memstory.results.folder.holding import Hold
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
for _ in range(2):  # the first lets go of it
    try:
        Hold(Path(sys.argv[1]))
    except Exception as error:
        print(error)
"""


def test_a_folder_without_room_for_the_mark_is_told_and_let_go(tmp_path):
    run = subprocess.run([sys.executable, "-c", NO_ROOM, tmp_path], capture_output=True, text=True, check=True)  # noqa: S603
    line = f"{tmp_path / LOCK_NAME} cannot be written: File too large. Give its disk room, or choose another folder"
    assert run.stdout.splitlines() == [line] * 2
