"""How a child ended is asked as often as one likes, also where the system cannot look without reaping."""

import os
import subprocess
import sys

import pytest

from memstory.child_process import end_of, kill_group, wait_for_end


@pytest.fixture(params=["waitid", "waitpid"])
def _system(request, monkeypatch):
    if request.param == "waitpid":  # as on macOS before Python 3.13
        monkeypatch.delattr(os, "waitid")


@pytest.fixture
def start():
    started = []

    def start(code):
        process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)  # noqa: S603
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("_system")
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(3)", " with exit code 3"),
        ("pass", " with exit code 0"),
        ("import os; os.kill(os.getpid(), 9)", " by signal 9 (Killed)"),
    ],
)
async def test_an_end_is_told_again_and_again(start, code, said):
    process = start(code)
    await wait_for_end(process, 30)
    assert [end_of(process.pid), end_of(process.pid)] == [said, said]


@pytest.mark.usefixtures("_system")
async def test_a_group_is_killed_and_killing_it_again_is_harmless(start):
    process = start("import time; time.sleep(600)")
    assert end_of(process.pid) is None
    kill_group(process.pid)
    await wait_for_end(process, 30)
    assert end_of(process.pid) == " by signal 9 (Killed)"
    kill_group(process.pid)


@pytest.mark.usefixtures("_system")
def test_what_is_no_child_is_an_error_and_no_end(start):
    process = start("pass")
    process.wait()
    with pytest.raises(ChildProcessError):
        end_of(process.pid)
