"""`memstory run`: pytest with the chosen stories, and no other tests of the project."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from memstory.commands.command import Command
from memstory.commands.ini_setting import settings_file
from memstory.commands.story_files import story_files

_BUNDLED = "--bundled"
_CONFIG = ("-c", "--config-file")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH",
        help="story files, folders to search, or ids such as a.story.yaml::S5[topics] (default: the present folder)",
    )  # fmt: skip
    parser.add_argument(_BUNDLED, action="store_true", help="the stories that come with memstory")
    parser.add_argument(
        "pytest", nargs="*", metavar="OPTION",
        help="from the first option on everything goes to pytest: --target NAME, --report DIR, -k, -x, --lf, -n 2 …",
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    # As `python -m pytest`, which finds adapters in this folder; in the place of this process, so that a signal, even
    # one that kills, ends the run and not only somebody who waits for it.
    command = [sys.executable, "-m", "pytest", *pytest_arguments(chosen.passed_on)]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606  (what the user typed, given to pytest)


def pytest_arguments(typed: Sequence[str]) -> Sequence[str]:
    """Return what pytest is given: the story files that the leading paths name, then the options as they are."""
    words = [word for word in typed if word != _BUNDLED]
    bundled = len(words) < len(typed)
    first_option = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    paths, options = words[:first_option], words[first_option:]
    nodes = [path for path in paths if "::" in path]
    searched = [path for path in paths if "::" not in path]
    files = story_files(searched, bundled=bundled) if searched or bundled or not nodes else ()
    here = _this_project(options, alone=not paths) if bundled else []
    return [*(str(file.path) for file in files), *nodes, *here, *options]


def _this_project(options: Sequence[str], *, alone: bool) -> Sequence[str]:
    """Return what makes pytest take reports, settings and targets of the project in this folder.

    It would take those of the place where the bundled stories lie. `alone`: no path of the project is named.
    """
    here = Path.cwd()
    words: list[str] = []
    if not any(word.startswith("--rootdir") for word in options):
        words.append(f"--rootdir={here}")
    if not any(word.startswith(_CONFIG) for word in options):
        words += ["-c", str(settings_file(here) or os.devnull)]
    if alone and (here / "conftest.py").is_file():
        words += ["-p", "conftest"]
    return words


COMMAND = Command(
    about=(
        "Run stories with pytest, in a process of its own. Paths come first; everything from the first option"
        " on goes to pytest as it is. The other tests of the project are not collected."
    ),
    examples="""
examples:
  memstory run                                            every story below this folder
  memstory run mine.story.yaml --target control:oracle    one file, on a perfect memory
  memstory run --bundled --target my_memory:MyFactory     the stories that come with memstory, on your backend
  memstory run stories -k S5 -x --report out              pytest's own options, after the paths
""",
    exit_codes=(
        "exit codes: pytest's own: 0 all passed, 1 something failed or nothing could run, 2 interrupted, 4 "
        "wrong options, 5 nothing was selected; 2 also if there is no story file"
    ),
    options=_options,
    run=_run,
    passes_on=True,
)
