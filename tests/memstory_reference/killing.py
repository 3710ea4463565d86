"""SIGKILL at random moments of writing: `python killing.py TEST_FILE FOLDER KILLS` prints what was acknowledged.

It forks the writers and the checkers of a test file, which has `OWNERS`, `write(folder, done, acknowledge)`, which
writes for ever, and `verify(folder, done)`. `done` says how many steps of each owner were acknowledged, by
`acknowledge(owner, step)`, in every life so far.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from importlib import util
from itertools import islice
from pathlib import Path
from types import ModuleType

SEED = int(os.environ.get("MEMSTORY_FUZZ_SEED", "0"))


def kill_writers(test_file: str, folder: Path, kills: int) -> dict[str, int]:
    """Return the acknowledged steps of each owner, from its own process; AssertionError where a check failed."""
    command = [sys.executable, __file__, test_file, folder, str(kills)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    assert run.returncode == 0, run.stderr
    done: dict[str, int] = json.loads(run.stdout)
    assert min(done.values()) >= (kills + 1) // 2, f"the writers did not get on between kills: {done}"
    return done


def _in_child(work: Callable[[], Awaitable[None]]) -> int:
    """Fork, so that slow imports are paid once; this process never opens its own store."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())  # type: ignore[arg-type]  # an async function makes a coroutine
        except BaseException:  # noqa: BLE001  (a forked child must not go on as its parent)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def _killed_writer(tests: ModuleType, folder: Path, done: dict[str, int], steps: int, moment: float) -> None:
    """Kill a writer that has acknowledged `steps`, `moment` seconds later, and count in `done` all it acknowledged.

    It is waited for, however slow the machine is: time only says at which point of a step it dies.
    """
    reading, writing = os.pipe()

    def acknowledge(owner: str, step: int) -> None:
        os.write(writing, f"{step} {owner}\n".encode())

    child = _in_child(lambda: tests.write(folder, done, acknowledge))
    os.close(writing)
    with os.fdopen(reading) as lines:
        acknowledged = list(islice(lines, steps))
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        acknowledged += lines
    _, status = os.waitpid(child, 0)
    if len(acknowledged) < steps or not os.WIFSIGNALED(status):
        sys.exit("a writer ended by itself")
    for line in acknowledged:
        step, owner = line.rstrip("\n").split(" ", 1)
        done[owner] = int(step) + 1


def _main(test_file: Path, folder: Path, kills: int) -> None:
    spec = util.spec_from_file_location(test_file.stem, test_file)
    assert spec
    assert spec.loader
    tests = util.module_from_spec(spec)
    sys.modules[test_file.stem] = tests  # dataclasses look their module up
    spec.loader.exec_module(tests)
    chance = random.Random(SEED)  # noqa: S311  (moments, not secrets)
    done, moment = dict.fromkeys(tests.OWNERS, 0), 0.0
    for number in range(kills):
        began = time.monotonic()
        # Every other writer gets on by a round of all owners at least; the others may die while they open the store.
        steps = chance.randrange(2 * len(done)) + (0 if number % 2 else len(done))
        _killed_writer(tests, folder, done, steps, chance.random() * moment)
        if steps:
            moment = (time.monotonic() - began) / steps
        _, status = os.waitpid(_in_child(lambda: tests.verify(folder, done)), 0)
        if status:
            sys.exit(f"after kill {number + 1}, acknowledged {done}: the check failed")
    print(json.dumps(done))  # noqa: T201  (the answer to the test)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
