"""`memstory demo`: five stories on three memories in a few seconds, one of which leaks; then the page to look at."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, USAGE, Command
from memstory.commands.output import complain, say
from memstory.commands.running.run import pytest_arguments
from memstory.commands.running.supervising import supervise
from memstory.reporting.writing import PAGE_NAME

TARGETS: Final = ("control:oracle", "hybrid", "control:leaky")
_FOLDER: Final = "memstory-demo"
_STORIES: Final = "demo.story.yaml"
_RAN: Final = (0, 1)
"""Exit codes of pytest that say that the stories ran: one memory is to fail."""

_INTRODUCTION: Final = """\
Five stories on three memories: a perfect one (control:oracle), search in SQLite by words and by a
small table of vectors (hybrid), and a faulty one that mixes up its users (control:leaky), which must fail.
"""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder", type=Path, default=Path(_FOLDER), metavar="DIR", help=f"where to write (default: {_FOLDER})"
    )


def _run(chosen: argparse.Namespace) -> int:
    folder: Path = chosen.folder
    folder.mkdir(parents=True, exist_ok=True)
    stories = folder / _STORIES
    stories.write_text(files("memstory").joinpath("templates", _STORIES).read_text("utf-8"), "utf-8")
    say(_INTRODUCTION)
    sys.stdout.flush()
    words = [word for target in TARGETS for word in ("--target", target)]
    typed = [str(stories), *words, "--report", str(folder / "report"), "-q", "--no-header", "-p", "no:cacheprovider"]
    code = supervise(pytest_arguments(typed))
    if code not in _RAN:
        complain("the stories did not run; what pytest says above is the reason")
        return USAGE
    page = (folder / "report" / PAGE_NAME).resolve().as_uri()
    say(f"\nThe leak above is what memstory is for. Open the page:  {page}")
    say(f"The stories are in {stories}. Your own memory:  memstory new target my_memory")
    return OK


COMMAND = Command(
    about=(
        "Run five stories on a perfect memory, on a keyword store and on one that leaks, and show what a failure "
        "looks like. It takes a few seconds and needs no model, no key and no network."
    ),
    examples="""
examples:
  memstory demo
  memstory demo --folder /tmp/demo
""",
    exit_codes="exit codes: 0 the stories ran, 2 they could not",
    options=_options,
    run=_run,
)
