"""Targets that are forked from a process which has imported what they need: as cold ones, only sooner."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.child_process import wait_until
from memstory.contract.clock import StoryClock
from memstory.contract.errors import SetupError, TargetError
from memstory.contract.target import Environment, Item, Request, Scope, Target, TargetFactory
from memstory.running.hosting.host import HostedTarget
from memstory.running.hosting.process import Cold, Forked, can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system cannot fork from a nursery")

ANN = Scope(user="ann", session="s")

NURSED = """
import asyncio, os, subprocess, sys, threading, time
from memstory.controls import Oracle
from memstory.contract.target import TargetFactory


class Nursed(Oracle):
    async def inspect(self, what, args, scope):
        match what:
            case "born":
                return [os.environ.get("NURSED"), os.getcwd(), sys.path[0]]
            case "nursery":
                return os.getppid()
            case "descriptors":
                return sorted(os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if entry.is_symlink())
            case "grandchild":
                return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
            case "block":
                time.sleep(3600)


class NursedFactory(TargetFactory):
    name, spec = "nursed", "nursed_target:NursedFactory"

    def capabilities(self, options):
        return frozenset()

    def target(self):
        return Nursed()
"""


@pytest.fixture
def nursed(tmp_path, monkeypatch):
    """Return a function that makes an unopened target with modules that are imported once."""
    (tmp_path / "nursed_target.py").write_text(NURSED)
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(*preload, spec="nursed_target:NursedFactory"):
        factory = TargetFactory()
        factory.spec, factory.preload = spec, preload or ("memstory.controls",)
        return HostedTarget(factory, tmp_path / "host")

    return make


@pytest.fixture
def env(tmp_path):
    (tmp_path / "workspace").mkdir()
    return Environment(workspace=str(tmp_path / "workspace"), owner="ann")


@pytest.fixture
async def opened(nursed, env):
    """Yield an open target that was forked."""
    target = nursed()
    await target.open(env, StoryClock())
    yield target
    await target.kill()


def runs(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


async def gone(pid, seconds=10):
    await wait_until(lambda: not runs(pid), seconds)
    return not runs(pid)


async def test_a_target_is_forked_only_if_its_factory_says_what_to_preload(opened, env):
    assert isinstance(opened._process, Forked)
    factory = TargetFactory()
    factory.spec = "nursed_target:NursedFactory"
    cold = HostedTarget(factory, Path(env.workspace) / "host")
    await cold.open(env, StoryClock())
    assert isinstance(cold._process, Cold)
    await cold.close()


async def test_what_is_preloaded_is_imported_once(nursed, env, tmp_path):
    (tmp_path / "dear_to_import.py").write_text(f"open({str(tmp_path / 'count')!r}, 'a').write('x')")
    for _ in range(3):
        target = nursed("dear_to_import")
        await target.open(env, StoryClock())
        await target.close()
    assert (tmp_path / "count").read_text() == "x"


async def test_a_forked_child_has_the_environment_folder_and_path_of_its_own_start(
    opened, nursed, env, tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("NURSED", "later")
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    second = nursed()
    await second.open(env, StoryClock())
    where = str(tmp_path / "elsewhere")
    assert await second.perform(Request.of(Target.inspect, "born", {}, ANN)) == ["later", where, where]
    assert (await opened.perform(Request.of(Target.inspect, "born", {}, ANN)))[0] is None
    await second.close()


async def test_a_forked_child_holds_nothing_of_its_nursery_nor_of_its_siblings(opened, nursed, env):
    alone = await opened.perform(Request.of(Target.inspect, "descriptors", {}, ANN))
    second = nursed()
    await second.open(env, StoryClock())
    beside = await second.perform(Request.of(Target.inspect, "descriptors", {}, ANN))
    assert len(beside) == len(alone)
    assert not [name for name in beside if "pidfd" in name]
    await second.close()


async def test_one_that_is_killed_takes_no_sibling_with_it(opened, nursed, env):
    second = nursed()
    await second.open(env, StoryClock())
    await second.kill()
    assert (await opened.perform(Request.of(Target.add, [Item(text="tea")], ANN))).items


async def test_a_preload_that_leaves_a_thread_running_is_refused_by_the_threads_name(nursed, env, tmp_path):
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
    )
    target = nursed("threaded")
    with pytest.raises(SetupError, match=r"start threads \(.+\), which a fork loses"):
        await target.open(env, StoryClock())
    assert not target.is_alive
    # A nursery cannot lose a thread again: the next one is new.
    other = nursed()
    await other.open(env, StoryClock())
    await other.close()


async def test_a_preload_that_is_not_installed_is_no_error_where_nobody_needs_it(nursed, env):
    target = nursed("a_vendor_that_is_not_there")
    await target.open(env, StoryClock())
    await target.close()


async def test_a_preload_that_ends_the_process_is_told_with_its_last_words_and_costs_one_case(nursed, env, tmp_path):
    (tmp_path / "deadly.py").write_text("import os\nprint('last words', flush=True)\nos._exit(3)")
    target = nursed("deadly")
    with pytest.raises(TargetError, match="that was to fork the target's has ended; it last printed:\nlast words"):
        await target.open(env, StoryClock())
    other = nursed()
    await other.open(env, StoryClock())
    await other.close()


async def test_a_target_whose_nursery_was_killed_ends_and_the_next_has_a_new_one(opened, nursed, env):
    pid, child = await opened.perform(Request.of(Target.inspect, "nursery", {}, ANN)), opened._process.pid
    os.kill(pid, signal.SIGKILL)
    assert await gone(pid)
    await opened.kill()
    assert await gone(child, 20)
    other = nursed()
    await other.open(env, StoryClock())
    assert await other.perform(Request.of(Target.inspect, "nursery", {}, ANN)) != pid
    await other.close()


async def test_opening_that_is_cancelled_leaves_no_child(nursed, env):
    target = nursed()
    opening = asyncio.create_task(target.open(env, StoryClock()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not target.is_alive


RUN = """
import asyncio
from pathlib import Path
from nursed_target import NursedFactory
from memstory.contract.clock import StoryClock
from memstory.running.hosting.host import HostedTarget
from memstory.contract.target import Environment, Request, Scope, Target

NursedFactory.preload = ("memstory.controls",)
scope = Scope(user="ann")

async def main():
    target = HostedTarget(NursedFactory(), Path("host"))
    await target.open(Environment(workspace="work", owner="ann"), StoryClock())
    nursery = await target.perform(Request.of(Target.inspect, "nursery", {}, scope))
    grandchild = await target.perform(Request.of(Target.inspect, "grandchild", {}, scope))
    print(nursery, target._process.pid, grandchild, flush=True)
    await target.perform(Request.of(Target.inspect, "block", {}, scope))

Path("work").mkdir()
asyncio.run(main())
"""


async def test_nothing_outlives_a_harness_that_was_killed_even_if_it_blocks(tmp_path):
    (tmp_path / "nursed_target.py").write_text(NURSED)
    harness = subprocess.Popen(  # noqa: ASYNC220, S603  (the script above)
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
    )
    with harness:
        left = [int(pid) for pid in harness.stdout.readline().split()]
        assert len(left) == 3
        assert all(map(runs, left))
        harness.kill()
    assert [await gone(pid) for pid in left] == [True] * 3
