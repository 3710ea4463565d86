"""`memstory run`: pytest with the chosen stories, and no other tests of the project."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

from memstory.bundled import PREFIX
from memstory.commands.command import Command
from memstory.commands.ini_setting import pytest_settings
from memstory.commands.running.option_names import BUNDLED, spelled_out
from memstory.commands.running.supervising import supervise
from memstory.commands.story_files import SUFFIXES, bundled_path, is_set, story_files
from memstory.contract.errors import SetupError

_WORKERS: Final = re.compile(r"-n(\d+|auto|logical|)$|--numprocesses\b")
_CONFIG = ("-c", "--config-file")
_OF_PLUGINS = ("required_plugins", "usefixtures", "langsmith_", "anyio_", "asyncio_")
"""How settings begin by which a project uses a plugin: pytest's own for any, and those of the plugins below."""

_UNUSED: Final = (
    *("-p", "no:langsmith_plugin", "-p", "no:anyio", "-p", "no:asyncio", "-p", "no:hypothesispytest"),
    "--assert=plain",
)
"""What keeps pytest from work that no story uses.

Plugins that come with other libraries take longer to import than a story, and pytest-asyncio warns a project without
its settings. Our asserts are rewritten at each start where Python keeps no bytecode.
"""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH",
        help="story files, folders to search, sets of data such as locomo, or ids such as a.story.yaml::S5[topics] "
             "(default: the current folder)",
    )  # fmt: skip
    parser.add_argument(BUNDLED, action="store_true", help="the stories that come with memstory, or "
                        "those in the PATHs among them, such as generic")  # fmt: skip
    parser.add_argument(
        "pytest", nargs="*", metavar="OPTION",
        help="everything else goes to pytest: --target NAME, --report DIR, -k, -x, --lf, -n 2 …",
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    words = pytest_arguments(chosen.passed_on)
    if workers := next((word for word in words if _WORKERS.match(word)), None):
        _check_workers(workers)
    sys.stdout.flush()
    return supervise(words, chosen.passed_on)


def _check_workers(word: str) -> None:
    if find_spec("xdist") is None:
        raise SetupError(f"{word} spreads stories over processes by pytest-xdist, which is not here: leave it out, or "
                         "type: pip install pytest-xdist")  # fmt: skip


def pytest_arguments(typed: Sequence[str]) -> Sequence[str]:
    """Return what pytest is given: the story files that the paths name, then the options under their own names."""
    words = [word for word in typed if word != BUNDLED]
    bundled = len(words) < len(typed) or any(word.startswith(PREFIX) and bundled_path(word) != word for word in words)
    found = [bundled_path(word) if bundled or is_set(word) else word for word in words]
    places = [place for place in range(len(words)) if _is_path(words, found, place)]
    paths = [found[place] for place in places]
    options = [word for place, word in enumerate(words) if place not in places]
    nodes = [path for path in paths if "::" in path]
    searched = [path for path in paths if "::" not in path]
    files = story_files(searched, bundled=bundled) if searched or not nodes else ()
    ours = [words[place] for place in places if words[place] == found[place]]
    here = _this_project(options, alone=not ours) if len(ours) < len(paths) or bundled else []
    unused = _plugin_switches(options, paths)
    return [*(str(file.path) for file in files), *nodes, *here, *unused, *spelled_out(options)]


def _is_path(words: Sequence[str], found: Sequence[str], place: int) -> bool:
    """Return whether a word names stories: one before all options, a YAML file, or a folder or set no option takes."""
    if words[place].startswith("-"):
        return False
    if not any(word.startswith("-") for word in words[:place]):
        return True
    path, before = Path(found[place].partition("::")[0]), words[place - 1]
    follows_option = before.startswith("-") and "=" not in before
    if is_set(words[place]):
        return not follows_option
    return not follows_option and path.is_dir() if path.suffix not in SUFFIXES else path.is_file()


def _plugin_switches(options: Sequence[str], paths: Sequence[str]) -> Sequence[str]:
    """Return what keeps pytest from unused work, where nothing but stories can use plugins.

    Who has a conftest, or a setting or an option by which a plugin is used, has pytest as it is.
    """
    folders = [Path(place.partition("::")[0]).absolute() for place in (".", *paths)]
    found = [pytest_settings(folder)[1] for folder in folders]
    written = [one.get("addopts", "") for one in found] + [os.environ.get("PYTEST_ADDOPTS", "")]
    typed = [word for text in written for word in (shlex.split(text) if isinstance(text, str) else text)]
    typed += options
    plugins = [word if word.startswith("-p") and len(word) > len("-p") else value
               for word, value in pairwise([*typed, ""]) if word.startswith("-p")]  # fmt: skip
    if any("no:" not in name for name in plugins) or any(
        word.startswith((*_CONFIG, "--assert", "--hypothesis")) for word in typed
    ):
        return ()
    named = [name for one in found for name in one if name.startswith(_OF_PLUGINS)]
    conftests = {above / "conftest.py" for folder in folders for above in (folder, *folder.parents)}
    return () if named or os.environ.get("PYTEST_PLUGINS") or any(map(Path.is_file, conftests)) else _UNUSED


def _this_project(options: Sequence[str], *, alone: bool) -> Sequence[str]:
    """Return what makes pytest take reports, settings and targets of the project in this folder.

    It would take those of the place where the bundled stories lie. `alone`: no path of the project is named.
    """
    here = Path.cwd()
    words: list[str] = []
    if not any(word.startswith("--rootdir") for word in options):
        words.append(f"--rootdir={here}")
    if not any(word.startswith(_CONFIG) for word in options):
        words += ["-c", str(pytest_settings(here)[0] or os.devnull)]
    if alone and (here / "conftest.py").is_file():
        words += ["-p", "conftest"]
    return words


COMMAND = Command(
    about=(
        "Run stories with pytest. memstory reads the paths and passes everything else to pytest, --target as "
        "--memstory-target and so on, whatever options the project defines. The project's other tests are not "
        "collected."
    ),
    examples="""
examples:
  memstory run                                            every story below this folder
  memstory run mine.story.yaml --target control:oracle    one file, on a perfect memory
  memstory run --bundled --target my_memory:MyFactory     the stories that come with memstory, on your backend
  memstory run --bundled generic                          those that any memory should pass
  memstory run longmemeval --target mine --sample 20      a set of conversations by name; 'memstory data' fetches it
  memstory run stories -k S5 -x --report out              pytest's own options, after the paths
  memstory run stories --target mine --on dask://host:8786  on the workers of a cluster that see this very folder
""",
    exit_codes=(
        "exit codes: pytest's own: 0 all passed, 1 something failed or nothing could run, 2 interrupted, 3 a target "
        "ended pytest, or an internal error, 4 wrong options, 5 nothing was selected; 2 also if there is no story file"
    ),
    options=_options,
    run=_run,
    passes_on=True,
)
