# noqa: INP001  (a script, no package)
"""Follows a page word by word in an empty folder: `python docs/replay.py PAGE` puts what was really printed into it.

A `console` block holds commands, each after `$ `, with what they print. A `yaml` block whose paragraph before says
"as `NAME`" is a file that the reader saves. Everything else is only read.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

READER = "/home/you/first-story"
"""The folder that the page shows in the place of the one in which it was replayed."""

_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED_AS = re.compile(r"as\s`([\w.-]+)`[^`]*\Z")
_TIMES = ((re.compile(r"\bin \d+\.\d+s\b"), "in 0.10s"), (re.compile(r"\bin \d+\.\d+ s\b"), "in 0.00 s"),
          (re.compile(r"\b\d+ ms\b"), "0 ms"))  # fmt: skip


def replayed(page: str, folder: Path) -> str:
    """Return `page` with what its commands really print in `folder`; times are made equal."""
    pieces, end = [], 0
    for found in _BLOCK.finditer(page):
        before = page[end : found.start()]
        kind, body = found.groups()
        if kind == "console":
            body = "".join(_printed(command, folder) for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE))
        elif name := _SAVED_AS.search(before):
            (folder / name[1]).write_text(body, "utf-8")
        pieces += [before, f"```{kind}\n{body}```"]
        end = found.end()
    return "".join([*pieces, page[end:]])


def _printed(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": "", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(  # noqa: S602  (the commands of our own page, as a reader types them)
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        encoding="utf-8", check=False,
    )  # fmt: skip
    text = done.stdout.replace(str(folder), READER)
    for pattern, same in _TIMES:
        text = pattern.sub(same, text)
    return f"$ {command}\n" + "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main() -> int:
    """Put into each named page what its commands print."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(name)
            page.write_text(replayed(page.read_text("utf-8"), Path(folder).resolve()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
