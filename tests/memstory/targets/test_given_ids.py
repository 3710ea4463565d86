import subprocess
import sys

from memstory.contract.target import Environment
from memstory.targets.given_ids import GivenIds


def test_no_id_is_given_twice_by_two_that_were_opened_one_after_the_other(tmp_path):
    env = Environment(workspace=str(tmp_path), owner="ann", seed=3)
    given = [ids.next() for ids in (GivenIds(env), GivenIds(env), GivenIds(env)) for _ in range(3)]
    assert len(set(given)) == 9
    assert all(id_.startswith("m3.") for id_ in given)


def test_the_same_run_gives_the_same_ids(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (GivenIds(Environment(workspace=str(tmp_path / name), owner="ann")) for name in ("one", "two"))
    assert [one.next(), one.next()] == [two.next(), two.next()]


OPEN = """
import sys
from memstory.contract.target import Environment
from memstory.targets.given_ids import GivenIds
sys.stdin.readline()
for _ in range(200):
    print(GivenIds(Environment(workspace=sys.argv[1], owner="ann")).next())
"""


def test_processes_that_open_one_memory_at_the_same_time_never_give_one_id_twice(tmp_path):
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
