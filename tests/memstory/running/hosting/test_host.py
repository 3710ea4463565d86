"""A target in its own process: values, errors, time and death cross over."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from datetime import timedelta
from pathlib import Path

import pytest
from memstory_tests_waiting import eventually

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, SetupError, StoryError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Request, Scope, Target, TargetFactory
from memstory.controls import OracleFactory
from memstory.running.hosting import host
from memstory.running.hosting.host import HostedTarget
from memstory.running.hosting.process import can_fork

ANN = Scope(user="ann", session="s")

HOSTED = """
import asyncio, os, subprocess, sys
from memstory.controls import Oracle
from memstory.contract.errors import Refused, StoryError
from memstory.contract.target import TargetFactory, ToolCall


class Odd(Oracle):
    async def open(self, env, clock):
        if env.options.get("refuse"):
            raise StoryError("no such option")
        self.clock = clock
        self.woken = []
        self.lock = asyncio.Event()
        self.sleeper = asyncio.create_task(self.wait())
        await super().open(env, clock)

    async def wait(self):
        from datetime import timedelta
        await self.clock.sleep_until(self.clock.now() + timedelta(hours=1))
        self.woken.append(self.clock.now().isoformat())

    async def inspect(self, what, args, scope):
        match what:
            case "print":
                print("to standard output")
                os.write(1, b"raw to descriptor 1\\n")
                return "printed"
            case "wait":
                await self.lock.wait()
                return "freed"
            case "free":
                self.lock.set()
                return "freeing"
            case "woken":
                return self.woken
            case "now":
                return self.clock.now().isoformat()
            case "die":
                print("last words", flush=True)
                os._exit(7)
            case "grandchild":
                return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
            case "environment":
                return [os.environ.get("ODD"), os.getcwd(), sys.path[0], os.getppid()]
            case "boom":
                raise ZeroDivisionError("in the child")
            case "big":
                return "x" * args["length"]

    async def load(self, items, scope):
        for item in items:
            if item.text == "declined":
                raise Refused("not that")
            yield await self.add([item], scope)

    async def tool(self, name, args, scope, caller=None):
        return ToolCall(name=name, args=args, result={"caller": caller})


class OddFactory(TargetFactory):
    name = "odd"
    spec = "odd_target:OddFactory"

    def capabilities(self, options):
        return frozenset()

    def target(self):
        return Odd()


class Vendorless(OddFactory):
    spec = "odd_target:Vendorless"

    async def start(self, folder):
        import a_vendor_that_is_not_there
"""


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """Return a function that makes an unopened hosted target of the module above."""
    (tmp_path / "odd_target.py").write_text(HOSTED)
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name="OddFactory", preload=()):
        factory = TargetFactory()
        factory.spec = f"odd_target:{name}"
        factory.preload = preload
        return HostedTarget(factory, tmp_path / "host")

    return make


@pytest.fixture
def env(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Environment(workspace=str(workspace), owner="ann")


PRELOAD = ("memstory.controls",)


@pytest.fixture(params=[(), PRELOAD], ids=["cold", "forked"])
async def opened(odd, env, request):
    """Yield an open hosted target and the clock of its story."""
    clock = StoryClock()
    target = odd(preload=request.param)
    await target.open(env, clock)
    yield target, clock
    await target.kill()


@pytest.fixture
def _macos(monkeypatch):
    """Take away what Python has on Linux alone."""
    for name in ("pidfd_open", "waitid"):
        monkeypatch.delattr(os, name)
    can_fork.cache_clear()
    yield
    can_fork.cache_clear()


@pytest.mark.usefixtures("_macos")
async def test_a_system_without_pidfd_starts_each_child_anew_and_ends_it_as_elsewhere(odd, env):
    target = odd(preload=PRELOAD)
    await target.open(env, StoryClock())
    *_, parent = await target.perform(Request.of(Target.inspect, "environment", {}, ANN))
    assert parent == os.getpid()
    await target.perform(Request.of(Target.add, [Item(text="kept")], ANN))
    with pytest.raises(TargetError, match="exit code 7; it last printed:\nlast words"):
        await target.perform(Request.of(Target.inspect, "die", {}, ANN))
    assert await target.kill() == " with exit code 7"
    again = odd(preload=PRELOAD)
    await again.open(env, StoryClock())
    assert [hit.text for hit in await again.perform(Request.of(Target.list, ANN))] == ["kept"]
    assert await again.kill() == " by signal 9 (Killed)"
    await again.close()


async def test_values_keep_their_types_on_the_way(opened):
    target, _ = opened
    receipt = await target.perform(Request.of(Target.add, [Item(text="Größe: 漢字", metadata={"n": [1, None]})], ANN))
    hits = await target.perform(Request.of(Target.search, Query(text="größe"), ANN))
    assert hits[0].id == receipt.items[0].id
    assert hits[0].metadata == {"n": [1, None]}
    assert await target.perform(Request.of(Target.get, Ref(id="nope"), ANN)) is None
    assert await target.perform(Request.of(Target.delete, Ref(id=receipt.items[0].id), ANN)) is True
    assert (await target.perform(Request.of(Target.tool, "t", {"a": {}}, ANN, "critic"))).result == {"caller": "critic"}
    assert (await target.perform(Request.of(Target.about)))["memory"].startswith("oracle")


async def test_errors_arrive_as_what_they_were(opened):
    target, _ = opened
    with pytest.raises(Refused, match="nope"):
        await target.perform(Request.of(Target.update, Ref(id="nope"), Item(text="x"), ANN))
    with pytest.raises(NotSupported) as missing:
        await target.perform(Request.of(Target.say, "hello", ANN))
    assert missing.value.capability == "chat"
    with pytest.raises(TargetError, match="ZeroDivisionError: in the child") as broken:
        await target.perform(Request.of(Target.inspect, "boom", {}, ANN))
    assert any("os" in note or "Traceback" in note for note in broken.value.__notes__)


async def test_an_error_while_opening_is_the_storys_if_it_says_so(odd, tmp_path):
    target = odd()
    with pytest.raises(StoryError, match="no such option"):
        await target.open(Environment(workspace=str(tmp_path), owner="a", options={"refuse": True}), StoryClock())
    await target.kill()


async def test_a_missing_vendor_in_the_child_is_a_setup_error_that_names_it(odd, env):
    target = odd("Vendorless")
    with pytest.raises(SetupError, match="a_vendor_that_is_not_there"):
        await target.open(env, StoryClock())
    await target.close()


async def test_what_the_target_prints_does_not_disturb_the_answers(opened):
    target, _ = opened
    assert await target.perform(Request.of(Target.inspect, "print", {}, ANN)) == "printed"
    assert await target.perform(Request.of(Target.inspect, "print", {}, ANN)) == "printed"


async def test_requests_overlap_and_answers_come_in_any_order(opened):
    target, _ = opened
    waiting = asyncio.create_task(target.perform(Request.of(Target.inspect, "wait", {}, ANN)))
    assert await target.perform(Request.of(Target.inspect, "free", {}, ANN)) == "freeing"
    assert await waiting == "freed"


async def test_a_long_answer_comes_whole(opened):
    target, _ = opened
    assert len(await target.perform(Request.of(Target.inspect, "big", {"length": 3_000_000}, ANN))) == 3_000_000


async def test_the_childs_clock_follows_the_storys_and_wakes_sleepers_at_their_time(opened):
    target, clock = opened
    assert await target.perform(Request.of(Target.inspect, "now", {}, ANN)) == "2026-01-01T12:00:00+00:00"
    await clock.advance_to(clock.now() + timedelta(hours=3))
    await target.perform(Request.of(Target.time_moved))
    assert await target.perform(Request.of(Target.inspect, "woken", {}, ANN)) == ["2026-01-01T13:00:00+00:00"]
    assert await target.perform(Request.of(Target.inspect, "now", {}, ANN)) == "2026-01-01T15:00:00+00:00"


async def test_a_child_that_dies_is_an_error_with_its_last_words(opened):
    target, _ = opened
    with pytest.raises(TargetError, match="last words"):
        await target.perform(Request.of(Target.inspect, "die", {}, ANN))
    with pytest.raises(TargetError, match="not running"):
        await target.perform(Request.of(Target.list, ANN))
    assert await target.kill() == " with exit code 7"
    assert await target.kill() is None


async def test_a_kill_fails_what_is_in_flight_and_leaves_what_was_acknowledged(opened, odd, env):
    target, clock = opened
    await target.perform(Request.of(Target.add, [Item(text="kept")], ANN))
    waiting = asyncio.create_task(target.perform(Request.of(Target.inspect, "wait", {}, ANN)))
    await asyncio.sleep(0)
    assert await target.kill() == " by signal 9 (Killed)"
    with pytest.raises(TargetError, match="ended"):
        await waiting
    again = odd()
    await again.open(env, clock)
    assert [hit.text for hit in await again.perform(Request.of(Target.list, ANN))] == ["kept"]
    await again.close()


def _runs(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")
@pytest.mark.parametrize("end", ["kill", "close"])
async def test_what_the_child_started_ends_with_it(opened, end):
    target, _ = opened
    pid = await target.perform(Request.of(Target.inspect, "grandchild", {}, ANN))
    assert _runs(pid)
    await getattr(target, end)()
    await eventually(lambda: not _runs(pid))


async def test_close_is_safe_twice_and_before_open(odd, env):
    target = odd()
    await target.close()
    await target.open(env, StoryClock())
    await target.close()
    await target.close()
    assert not target.is_alive


async def test_a_child_whose_parent_went_away_ends_by_itself(tmp_path):
    script = textwrap.dedent(f"""
        import asyncio, os
        from pathlib import Path
        from memstory.contract.clock import StoryClock
        from memstory.controls import OracleFactory
        from memstory.running.hosting.host import HostedTarget
        from memstory.contract.target import Environment

        async def main():
            target = HostedTarget(OracleFactory(), Path({str(tmp_path)!r}))
            await target.open(Environment(workspace={str(tmp_path)!r}, owner="a"), StoryClock())
            print(target._process.pid, flush=True)
            os._exit(0)

        asyncio.run(main())
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, env=environment
    )
    output, _ = await parent.communicate()
    await eventually(lambda: not _runs(int(output)))


async def test_what_is_loaded_goes_over_in_parts_and_what_came_before_an_error_is_told(odd, env, monkeypatch):
    monkeypatch.setattr(host, "LOADED", 2)
    target, given = odd(), []
    await target.open(env, StoryClock())
    items = (Item(text=text) for text in ("a", "b", "c", "declined", "e"))
    with pytest.raises(Refused, match="not that"):
        await _filled(given, target.load(items, ANN))
    assert [line.text for receipt in given for line in receipt.items] == ["a", "b", "c"]
    assert [item.text for item in items] == ["e"]
    listed = await target.perform(Request.of(Target.list, ANN))
    assert sorted(hit.text for hit in listed) == ["a", "b", "c"]
    await target.close()


async def _filled(given, receipts):
    async for receipt in receipts:
        given.append(receipt)


def test_a_factory_without_a_spec_cannot_be_hosted(tmp_path):
    with pytest.raises(NotSupported, match="spec"):
        HostedTarget(TargetFactory(), tmp_path)


def test_the_oracle_can_be_hosted():
    assert OracleFactory.spec == "memstory.controls:OracleFactory"
