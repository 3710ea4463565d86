"""What `memstory run` of one story costs from its start to its end: CPU of all its processes.

The goal is a ratio: so many times what pytest takes for a test that does nothing, with the same plugins; measured in
turns. Run it by `python benchmarks/start.py`, with the Python of the environment that is in question.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median

from memstory.commands.running.run import pytest_arguments

GOAL = 2.5
STORY = """\
story: tea
title: What was said is found
steps:
  - add: Ana drinks her tea with lemon.
  - search: how does Ana drink her tea
    expect: {hits: {count: 1, text: {contains: lemon}}}
"""


def main() -> None:
    """Print the median; exit 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="runs, of which the median counts (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "tea.story.yaml").write_text(STORY)
        (place / "test_nothing.py").write_text("def test_nothing(): pass\n")
        memstory = ["-c", "import sys; from memstory.cli import main; sys.exit(main())", "run"]
        story = [*memstory, "tea.story.yaml", "--target", "fts5"]
        with contextlib.chdir(folder):
            _, *unused = pytest_arguments(["tea.story.yaml"])
        nothing = ["-m", "pytest", "test_nothing.py", *unused]
        taken = [(cpu_seconds(place, story), cpu_seconds(place, nothing)) for _ in range(rounds + 1)]
    seconds, least = (median(column) for column in zip(*taken[1:], strict=True))  # The first may compile.
    others = {entry.name for entry in entry_points(group="pytest11")} - {"memstory"}
    print(f"plugins of pytest beside our own: {', '.join(sorted(others)) or 'none'}")
    print(f"one story on fts5, median of {rounds}: {seconds:.2f} s of CPU; pytest with nothing to do: {least:.2f} s")
    print(f"ratio {seconds / least:.2f} (goal: at most {GOAL:g})")
    sys.exit(seconds > GOAL * least)


def cpu_seconds(folder: Path, words: Sequence[str]) -> float:
    """Return what one run of Python took, with the processes that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  (our own command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
