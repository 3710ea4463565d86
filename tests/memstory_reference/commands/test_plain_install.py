"""`memstory-reference` where memstory is installed without any extra: help works, and a command says what it lacks."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires

import pytest

from memstory.contract.installation import install_command
from memstory_reference.cli import make_parser

BROUGHT = sorted(
    {re.split(r"[^\w-]", line)[0].replace("-", "_") for line in requires("memstory") or () if "extra ==" in line}
    - {"memstory"}
)
"""The packages of all extras, as they are imported."""

PLAIN = f"import sys; sys.modules.update(dict.fromkeys({BROUGHT})); from memstory_reference.cli import main; "
INSTALL = f"Install it with: {install_command('reference')}\n"
"""As the harness says it of a target."""


def plain(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python for which no package of an extra is there."""
    code = f"{PLAIN}sys.exit(main({list(words)}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603


def commands(parser: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from commands(inner, *words, name)


def test_every_help_is_shown_without_any_extra():
    words = [[*one, "--help"] for one in commands(make_parser())]
    assert len(words) > 25
    code = (
        f"{PLAIN}\nfor words in {words}:\n    try:\n        sys.exit(main(words) or 'no help')\n"
        "    except SystemExit as ended:\n        assert ended.code == 0, words\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("usage: memstory-reference") == len(words)


@pytest.mark.parametrize(
    "words",
    [
        ("chat",),
        ("chat", "--system", "layers"),
        ("memory", "list"),
        ("memory", "list", "--system", "turns", "--store", "none"),
        ("serve", "memory"),
        ("serve", "http"),
        ("observations", "search", "x", "--store", "none"),
        ("mcp",),
    ],
    ids=" ".join,
)
def test_a_command_without_its_extra_is_one_line_that_says_what_to_install(words):
    done = plain(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"memstory-reference: the package '\w+' is not installed\. {re.escape(INSTALL)}", done.stderr)


def test_a_missing_package_that_no_extra_brings_is_not_hidden():
    code = f"{PLAIN}sys.modules['tabulate'] = None; sys.exit(main(['observations', 'search', 'x', '--store', 'none']))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code.replace(f"{BROUGHT}", "['nothing']")], capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError: import of tabulate halted" in done.stderr


def test_a_program_that_opens_a_memory_without_its_extra_is_told_what_to_install():
    code = (
        f"{PLAIN}\nfrom memstory.contract.errors import SetupError\nfrom memstory_reference import open_memory\n"
        "try:\n    open_memory('topics', 'none')\nexcept SetupError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(INSTALL)
