"""`memstory run`: pytest with the chosen stories, and nothing else of the project."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from memstory.commands.command import Command
from memstory.commands.story_files import story_files

_BUNDLED = "--bundled"
_KILLED = 128


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
    # A process of its own, as `python -m pytest` is: it finds adapters in this folder, and its exit code is ours.
    command = [sys.executable, "-m", "pytest", *pytest_arguments(chosen.passed_on)]
    with subprocess.Popen(command) as process:  # noqa: S603  (what the user typed, given to pytest)
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                # It was sent to pytest as well, which writes the report of what was done: wait for it.
                continue
            return _KILLED - code if code < 0 else code


def pytest_arguments(typed: Sequence[str]) -> Sequence[str]:
    """Return what pytest is given: the story files that the leading paths name, then the options as they are."""
    words = [word for word in typed if word != _BUNDLED]
    bundled = len(words) < len(typed)
    first_option = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    paths, options = words[:first_option], words[first_option:]
    nodes = [path for path in paths if "::" in path]
    searched = [path for path in paths if "::" not in path]
    files = story_files(searched, bundled=bundled) if searched or bundled or not nodes else ()
    # Without it, the reports of bundled stories would go to where memstory is installed.
    root = [f"--rootdir={Path.cwd()}"] if bundled and not any(word.startswith("--rootdir") for word in options) else []
    return [*(str(file.path) for file in files), *nodes, *root, *options]


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
