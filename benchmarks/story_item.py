"""What a story item costs beside a plain parametrized test: CPU of 1,000 of each, collection and run apart.

Run it with `python benchmarks/story_item.py`. The goal, a ratio of 1.3 at most, speaks of an item that does nothing:
its story is made already, its case passes at once and its result is kept in memory, so that what is left is what the
plugin adds to pytest. The lines below it say what writing the result to disk, reading and checking the YAML, judging
and a first step add.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

GOAL = 1.3
COLLECT_GOAL = 2.5

_CLOCK = """
import gc, json, os, time
import pytest
import memstory.pytest_plugin.collect  # what a start costs is another question

marks = {}

def pytest_sessionstart(session):
    gc.collect()
    gc.freeze()  # or one look at all that was imported falls into a phase by chance, and is longer than it
    marks["start"] = time.process_time()

def pytest_collection_finish(session): marks["collected"] = time.process_time()

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    marks["run"] = time.process_time()
    with open(os.environ["BENCH_OUT"], "w") as out:
        json.dump({"collect": marks["collected"] - marks["start"], "run": marks["run"] - marks["collected"]}, out)
"""

_NO_OP = """
from dataclasses import replace
import memstory.pytest_plugin.collect as collect
import memstory.pytest_plugin.session as session
from memstory.contract.errors import Mark
from memstory.judging.evaluation import evaluate
from memstory.language.story import Story

class Nothing:
    targets = {"nothing": None}
    def run(self, case, base): return replace(evaluate(case, ()), outcome="passed", reason=None)
    def stop(self): return []

STORIES = [Story(id=f"N{n}", title="", mark=Mark("many.story.yaml", n, 1), digest="") for n in range(COUNT)]

collect.read_story_file = lambda *_, **__: STORIES
session.SessionState.worker = Nothing()
"""

_IN_MEMORY = """
KEPT = []

class InMemory:
    def __init__(self, folder): pass
    def append(self, result): KEPT.append(result)
    def clear(self): pass
    def read(self): return KEPT

session.Spool = InMemory
session.write_selected = lambda *_: None
"""

_TARGET = """
from memstory.contract.target import Receipt, Target, TargetFactory

class Nothing(Target):
    async def open(self, env, clock): pass
    async def close(self): pass
    async def add(self, items, scope): return Receipt()

class Factory(TargetFactory):
    def capabilities(self, options): return frozenset({"add"})
    def target(self): return Nothing()
"""

_PLAIN = "import pytest\n@pytest.mark.parametrize('number', range({count}))\ndef test_plain(number): pass\n"


def main() -> None:
    """Print the ratios; exit 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="items of each sort (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, of which the median counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sorts = write_projects(Path(folder), options.count)
        seconds = measure(sorts, options.rounds)
    plain = seconds["plain"]
    print(f"{options.count} items, median CPU seconds of {options.rounds} runs, ratio to plain parametrized tests")
    for name, one in seconds.items():
        row = "  ".join(
            f"{phase} {one[phase]:.2f} s ({one[phase] / plain[phase]:.2f}x)" for phase in ("collect", "run")
        )
        print(f"{name:<22} {row}")
    ratios = {phase: seconds["no-op story item"][phase] / plain[phase] for phase in ("collect", "run")}
    print(
        "no-op story item:", *(f"{phase} {ratio:.2f}x" for phase, ratio in ratios.items()), f"(goal: at most {GOAL}x)"
    )
    whole = seconds["story of one step"]["collect"] / plain["collect"]
    print(f"story of one step: collect {whole:.2f}x (wanted: {COLLECT_GOAL}x; it is read, checked and made as well)")
    sys.exit(max(ratios.values()) > GOAL)


def write_projects(folder: Path, count: int) -> dict[str, Path]:
    """Write one project for each sort of item and return their folders."""
    sorts = {
        "plain": _PLAIN.format(count=count),
        "no-op story item": "",
        "no-op, written to disk": "",
        "unsupported story": _stories(count, "requires: [chat]\nsteps: [{add: x}]"),
        "story of one step": _stories(count, "steps: [{add: x}]"),
    }
    found = {}
    for name, text in sorts.items():
        project = folder / name.replace(" ", "-")
        project.mkdir()
        no_op = _NO_OP.replace("COUNT", str(count)) if name.startswith("no-op") else ""
        in_memory = _IN_MEMORY if name == "no-op story item" else ""
        (project / "conftest.py").write_text(_CLOCK + no_op + in_memory)
        (project / "nothing.py").write_text(_TARGET)
        (project / "pytest.ini").write_text("[pytest]\nmemstory_target = nothing:Factory\npythonpath = .\n")
        (project / ("test_plain.py" if name == "plain" else "many.story.yaml")).write_text(text)
        found[name] = project
    return found


def measure(sorts: dict[str, Path], rounds: int) -> dict[str, dict[str, float]]:
    """Run every project `rounds` times, in turn, and return the median of each phase."""
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in sorts}
    for number in range(rounds):
        for name, project in sorts.items():
            out = project / f"out-{number}.json"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
            done = subprocess.run(  # noqa: S603  (our own command)
                command, cwd=project, env={**os.environ, "BENCH_OUT": str(out)}, capture_output=True, check=False
            )
            # 1 is what a run of unsupported stories ends with.
            if done.returncode > (name == "unsupported story"):
                raise RuntimeError(done.stdout.decode())
            taken[name].append(json.loads(out.read_text()))
    return {
        name: {phase: median(one[phase] for one in runs) for phase in ("collect", "run")}
        for name, runs in taken.items()
    }


def _stories(count: int, body: str) -> str:
    return "---\n".join(f"story: N{number}\ntitle: does nothing\n{body}\n" for number in range(count))


if __name__ == "__main__":
    main()
