"""Memories that misbehave in every way that a backend can: `hostile_targets:segfault` is a factory, and so on.

Most do it while they search. Each is a function of the module, `(memory, query, scope) -> hits`.
"""

import asyncio
import atexit
import ctypes
import inspect
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from memstory.controls import Oracle
from memstory.contract.target import Hit, TargetFactory

LONG = 1_000_000.0
MOODS = {}


class Memory(Oracle):
    mood = None

    async def open(self, env, clock):
        await during("open", self)
        await super().open(env, clock)

    async def close(self):
        await super().close()
        await during("close", self)

    async def search(self, query, scope):
        return (
            await MOODS[self.mood][1](self, query, scope)
            if MOODS[self.mood][0] == "search"
            else await self.found(query, scope)
        )

    async def found(self, query, scope):
        return list(await Oracle.search(self, query, scope))


class Factory(TargetFactory):
    def capabilities(self, options):
        return frozenset("add search search.scores list scope.user add.verbatim".split())

    async def start(self, folder):
        await during("start", self)

    async def stop(self):
        await during("stop", self)

    def target(self):
        made = Memory()
        made.mood = self.name
        return made


async def during(when, one):
    name = one.mood if isinstance(one, Memory) else one.name
    if MOODS[name][0] == when:
        await MOODS[name][1](one, None, None)


def hostile(when="search"):
    def taken(mood):
        name = mood.__name__
        MOODS[name] = (when, mood)
        globals()[name] = type(name, (Factory,), {"name": name, "spec": f"hostile_targets:{name}"})
        return globals()[name]

    return taken


# It does not answer.


@hostile("open")
async def hangs_while_it_opens(memory, query, scope):
    await asyncio.sleep(LONG)


@hostile("close")
async def hangs_while_it_closes(memory, query, scope):
    await asyncio.sleep(LONG)


@hostile("start")
async def exits_while_it_starts(memory, query, scope):
    sys.exit(0)


@hostile("stop")
async def raises_while_it_stops(memory, query, scope):
    raise RuntimeError("the server is gone")


@hostile("close")
async def exits_while_it_closes(memory, query, scope):
    sys.exit(0)


def exits_at_once_while_it_loads():
    os._exit(0)


@hostile("stop")
async def exits_at_once_while_it_stops(memory, query, scope):
    os._exit(0)


@hostile("stop")
async def forks_while_it_stops(memory, query, scope):
    os.fork()


@hostile()
async def hangs(memory, query, scope):
    (Path(os.environ["HOSTILE_MARK"]) / "hangs").touch()
    await asyncio.sleep(LONG)


@hostile()
async def blocks(memory, query, scope):
    time.sleep(LONG)


@hostile()
async def hangs_in_a_thread(memory, query, scope):
    return await asyncio.to_thread(time.sleep, LONG)


@hostile()
async def computes_for_ever(memory, query, scope):
    while True:
        pass


@hostile()
async def refuses_to_be_cancelled(memory, query, scope):
    while True:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            pass


@hostile()
async def waits_for_a_child_that_hangs(memory, query, scope):
    subprocess.run(["sleep", "5000"], check=False)
    return await memory.found(query, scope)


# It ends what it runs in.


@hostile()
async def exits_at_once(memory, query, scope):
    os._exit(0)


@hostile("open")
async def exits_at_once_while_it_opens(memory, query, scope):
    os._exit(0)


@hostile("close")
async def exits_at_once_while_it_closes(memory, query, scope):
    os._exit(0)


@hostile()
async def exits_at_once_from_a_thread(memory, query, scope):
    await asyncio.to_thread(os._exit, 0)


@hostile()
async def exits_by_the_c_library(memory, query, scope):
    ctypes.CDLL(None)._exit(0)


@hostile()
async def segfaults(memory, query, scope):
    ctypes.string_at(0)


@hostile()
async def aborts(memory, query, scope):
    os.abort()


@hostile()
async def kills_itself(memory, query, scope):
    os.kill(os.getpid(), signal.SIGKILL)


@hostile()
async def kills_its_group(memory, query, scope):
    os.killpg(0, signal.SIGKILL)


@hostile()
async def terminates_itself(memory, query, scope):
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(LONG)


@hostile()
async def becomes_another_program(memory, query, scope):
    os.execv("/bin/true", ["true"])


@hostile()
async def forks_and_goes_on_twice(memory, query, scope):
    os.fork()
    return await memory.found(query, scope)


# It raises what is not an error.


@hostile()
async def exits(memory, query, scope):
    sys.exit(0)


@hostile()
async def exits_in_a_task(memory, query, scope):
    async def bomb():
        sys.exit(0)

    asyncio.create_task(bomb())
    await asyncio.sleep(0.05)
    return await memory.found(query, scope)


@hostile()
async def exits_in_a_callback(memory, query, scope):
    asyncio.get_running_loop().call_soon(sys.exit, 0)
    await asyncio.sleep(0.05)
    return await memory.found(query, scope)


@hostile()
async def interrupts(memory, query, scope):
    raise KeyboardInterrupt


@hostile()
async def interrupts_in_a_task(memory, query, scope):
    async def bomb():
        raise KeyboardInterrupt

    asyncio.create_task(bomb())
    await asyncio.sleep(0.05)
    return await memory.found(query, scope)


@hostile()
async def raises_a_base_exception(memory, query, scope):
    class Panic(BaseException):
        pass

    raise Panic("boo")


@hostile()
async def raises_generator_exit(memory, query, scope):
    raise GeneratorExit


@hostile()
async def raises_cancelled(memory, query, scope):
    raise asyncio.CancelledError


@hostile()
async def cancels_the_task_it_is_in(memory, query, scope):
    asyncio.current_task().cancel()
    await asyncio.sleep(0.05)
    return await memory.found(query, scope)


@hostile()
async def cancels_all_tasks(memory, query, scope):
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0.05)
    return await memory.found(query, scope)


@hostile()
async def recurses_for_ever(memory, query, scope):
    def again():
        return again()

    return again()


@hostile()
async def raises_a_group_with_an_exit(memory, query, scope):
    raise BaseExceptionGroup("many", [SystemExit(3), ValueError("one")])


@hostile()
async def raises_an_error_without_words(memory, query, scope):
    class Unsayable(Exception):
        def __str__(self):
            raise RuntimeError("no message")

        __repr__ = __str__

    raise Unsayable


@hostile()
async def runs_out_of_memory(memory, query, scope):
    raise MemoryError


@hostile()
async def exits_pytest(memory, query, scope):
    import pytest

    pytest.exit("enough", returncode=0)


@hostile()
async def skips_by_pytest(memory, query, scope):
    import pytest

    pytest.skip("not today")


# It takes away what others need.


@hostile()
async def stops_the_loop(memory, query, scope):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.1)
    return await memory.found(query, scope)


@hostile()
async def takes_the_loop_away(memory, query, scope):
    asyncio.set_event_loop(None)
    asyncio.get_running_loop().close = lambda: None
    return await memory.found(query, scope)


@hostile()
async def closes_standard_output(memory, query, scope):
    sys.stdout.close()
    os.close(1)
    return await memory.found(query, scope)


@hostile()
async def closes_all_files(memory, query, scope):
    os.closerange(3, 4096)
    return await memory.found(query, scope)


@hostile()
async def goes_elsewhere(memory, query, scope):
    os.chdir("/")
    return await memory.found(query, scope)


@hostile()
async def goes_where_nothing_is(memory, query, scope):
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    os.rmdir(gone)
    return await memory.found(query, scope)


@hostile()
async def removes_its_workspace(memory, query, scope):
    folder = memory_folder(memory)
    shutil.rmtree(folder)
    return await memory.found(query, scope)


@hostile()
async def removes_all_workspaces(memory, query, scope):
    shutil.rmtree(Path(memory_folder(memory)).parent, ignore_errors=True)
    return await memory.found(query, scope)


def memory_folder(memory):
    return next(path for path in vars(memory).values() if isinstance(path, Path)).parent


@hostile()
async def forgets_the_environment(memory, query, scope):
    os.environ.clear()
    sys.path.clear()
    return await memory.found(query, scope)


@hostile()
async def ignores_signals(memory, query, scope):
    for one in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
        if threading.current_thread() is threading.main_thread():
            signal.signal(one, signal.SIG_IGN)
    return await memory.found(query, scope)


@hostile()
async def traces_everything(memory, query, scope):
    sys.settrace(lambda *_: None)
    return await memory.found(query, scope)


@hostile()
async def removes_the_report(memory, query, scope):
    shutil.rmtree("reports", ignore_errors=True)
    return await memory.found(query, scope)


@hostile()
async def puts_a_file_in_place_of_the_report(memory, query, scope):
    shutil.rmtree("reports/latest", ignore_errors=True)
    Path("reports").mkdir(exist_ok=True)
    Path("reports/latest").write_text("mine")
    return await memory.found(query, scope)


@hostile()
async def puts_a_file_in_place_of_all_reports(memory, query, scope):
    shutil.rmtree("reports", ignore_errors=True)
    Path("reports").write_text("mine")
    return await memory.found(query, scope)


@hostile()
async def makes_json_of_its_own(memory, query, scope):
    json.dumps, json.loads = (lambda *_, **__: "{}"), (lambda *_, **__: {})
    return await memory.found(query, scope)


@hostile()
async def lets_no_file_grow(memory, query, scope):
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    return await memory.found(query, scope)


@hostile()
async def turns_failures_into_passes_in_the_report(memory, query, scope):
    for path in Path("reports").rglob("*.json*"):
        path.write_bytes(path.read_bytes().replace(b'"failed"', b'"passed"').replace(b'"error"', b'"passed"'))
    return []


@hostile()
async def stops_all_clocks(memory, query, scope):
    time.time = time.monotonic = time.perf_counter = lambda: 0.0
    return await memory.found(query, scope)


@hostile()
async def exits_at_once_and_leaves_a_copy(memory, query, scope):
    if os.fork():
        os._exit(0)
    return await memory.found(query, scope)


@hostile()
async def changes_the_question(memory, query, scope):
    object.__setattr__(query, "text", "something else")
    object.__setattr__(scope, "user", "somebody else")
    return await memory.found(query, scope)


# It leaves something running.


@hostile()
async def leaves_a_thread(memory, query, scope):
    threading.Thread(target=time.sleep, args=(LONG,), name="left behind").start()
    return await memory.found(query, scope)


@hostile()
async def leaves_a_child(memory, query, scope):
    subprocess.Popen(["sleep", "5000"])
    return await memory.found(query, scope)


@hostile()
async def leaves_a_child_in_a_session_of_its_own(memory, query, scope):
    subprocess.Popen(
        ["sleep", "5000"],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return await memory.found(query, scope)


@hostile()
async def leaves_a_child_of_multiprocessing(memory, query, scope):
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(LONG,)).start()
    return await memory.found(query, scope)


@hostile()
async def hangs_at_exit(memory, query, scope):
    atexit.register(time.sleep, LONG)
    return await memory.found(query, scope)


# It answers what cannot be believed, or written.


def made(**changed):
    async def mood(memory, query, scope):
        return [replace(hit, **changed) for hit in await memory.found(query, scope)]

    return mood


class Raising(str):
    __slots__ = ()

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    __hash__ = str.__hash__

    def __repr__(self):
        raise RuntimeError("not to be shown")


def nested(depth):
    tree = inner = {}
    for _ in range(depth):
        inner["a"] = inner = {}
    return tree


CIRCLE = {}
CIRCLE["me"] = CIRCLE
for name, changed in {
    "answers_a_huge_number": {"metadata": {"n": 10**6000}},
    "answers_a_text_that_raises": {"text": Raising("The spare key hangs behind the pantry door.")},
    "answers_surrogates": {"id": "\ud800", "metadata": {"\udc00": "\ud800"}},
    "answers_deeply": {"metadata": nested(5000)},
    "answers_in_a_circle": {"metadata": CIRCLE},
    "answers_objects": {"metadata": {"a": object(), "b": b"x", "c": {1, 2}}},
    "answers_nan": {"score": float("nan")},
    "answers_infinity": {"score": float("inf")},
    "answers_five_megabytes": {"text": "x" * 5_000_000},
}.items():
    mood = made(**changed)
    mood.__name__ = name
    hostile()(mood)


@hostile()
async def answers_thousands(memory, query, scope):
    return [*await memory.found(query, scope), *(Hit(id=str(n), text="y" * 1000, score=0.0) for n in range(20_000))]


@hostile()
async def answers_nothing_at_all(memory, query, scope):
    return None


@hostile()
async def answers_for_ever(memory, query, scope):
    return iter(lambda: Hit(id="1", text="again"), None)


@hostile()
async def prints_twenty_megabytes(memory, query, scope):
    for _ in range(20):
        sys.stdout.write("z" * 1_000_000 + "\n")
    return await memory.found(query, scope)


@hostile("never")
async def good(memory, query, scope):
    raise AssertionError(inspect.currentframe())
