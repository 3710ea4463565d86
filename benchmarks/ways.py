"""How far a reader follows one thing through the code: `python benchmarks/ways.py`.

A file is visited, a stay is a run of calls within one file, and a return is a stay in a file that was left before. Two
cases of a story of two steps are read, played on the keyword store fts5, and reported. Nothing is cached before.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from memstory import parse_stories, play
from memstory.reporting.writing import write_reports
from memstory.results.runs import make_fingerprint, make_run
from memstory.targets.discovery import load_targets

STORY = """
story: W1
title: What was stored is found
steps:
  - add: Ana likes green tea
  - search: tea
"""
PACKAGE = "/memstory/"


@contextlib.contextmanager
def way(title: str) -> Iterator[None]:
    """Print the files that are visited within, and how often the way goes back to one of them; `-v` names them."""
    stays: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and frame.f_code.co_name != "<module>" and PACKAGE in file:
            place = file[file.rindex(PACKAGE) + 1 :]
            if not stays or stays[-1] != place:
                stays.append(place)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    files = list(dict.fromkeys(stays))
    print(f"{title}: {len(files)} files, {len(stays) - len(files)} returns")
    for file in files if "-v" in sys.argv else ():
        print(f"    {stays.count(file):4} {file}")


def main() -> None:
    """Measure the three ways."""
    with TemporaryDirectory() as folder:
        with way("YAML to Story"):
            (story,) = parse_stories(STORY, "W1.story.yaml")
        factory = load_targets(["fts5"])["fts5"]
        with way("Story to CaseResult on fts5"):
            result = asyncio.run(play(story, factory))
        cases = [result, replace(result, row="second")]
        with way("three reports of two cases"):
            write_reports(Path(folder), make_run(cases, make_fingerprint(cases)))


if __name__ == "__main__":
    main()
