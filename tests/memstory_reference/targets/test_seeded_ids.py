import subprocess
import sys

import pytest

from memstory.contract.errors import SetupError
from memstory_reference.targets.environment_ports import seeded_ids


def some(new_id, count=50):
    return [new_id() for _ in range(count)]


def test_the_same_seed_in_a_fresh_workspace_gives_the_same_ids(tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    one, other = [some(seeded_ids(folder, 7)) for folder in folders]
    assert one == other
    assert some(seeded_ids(folders[0], 8)) != one


def test_ids_never_come_twice_in_one_workspace_whatever_the_restarts(tmp_path):
    given = [one for _ in range(20) for one in some(seeded_ids(tmp_path, 0))]
    assert len(set(given)) == len(given) == 1000


OPEN = """
import sys
from pathlib import Path
from memstory_reference.targets.environment_ports import seeded_ids
sys.stdin.readline()
for _ in range(200):
    print(seeded_ids(Path(sys.argv[1]), 0)())
"""


def test_processes_that_open_one_workspace_at_the_same_time_never_give_one_id_twice(tmp_path):
    start = [sys.executable, "-c", OPEN, str(tmp_path)]
    processes = [
        subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  (our own)
        for _ in range(4)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    given = [one for process in processes for one in process.communicate()[0].split()]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(set(given)) == len(given) == 800


def test_a_workspace_that_nobody_can_write_to_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"file/opened: the workspace cannot be written \(.+\); choose another folder"):
        seeded_ids(tmp_path / "file", 0)
