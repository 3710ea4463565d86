"""What `memstory run` of one story costs from its start to its end: CPU of all its processes.

The goals: at most 1.2 s in the environment of `nox -s stories`, where the libraries of our extras bring plugins of
pytest, and 0.9 s after a plain install. Run it by `python benchmarks/start.py`, with the Python of that environment.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median

GOAL, GOAL_WITH_EXTRAS = 0.9, 1.2
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
        (Path(folder) / "tea.story.yaml").write_text(STORY)
        seconds = median([cpu_seconds(Path(folder)) for _ in range(rounds + 1)][1:])  # The first may compile.
    others = {entry.name for entry in entry_points(group="pytest11")} - {"memstory"}
    goal = GOAL_WITH_EXTRAS if others else GOAL
    print(f"plugins of pytest beside our own: {', '.join(sorted(others)) or 'none'}")
    print(f"one story on fts5, median of {rounds}: {seconds:.2f} s of CPU (goal: at most {goal:g} s)")
    sys.exit(seconds > goal)


def cpu_seconds(folder: Path) -> float:
    """Return what one run took, with the processes that it started."""
    memstory = "import sys; from memstory.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", memstory, "run", "tea.story.yaml", "--target", "fts5"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  (our own command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
