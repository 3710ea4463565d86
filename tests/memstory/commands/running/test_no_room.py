"""A run whose disk takes no more: each file that cannot be written is named, with what to do, and nothing is green."""

import os
import re
import resource
import subprocess
import sys
from functools import partial

import pytest

STORIES = """
story: A1
title: A fact is found
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
---
story: A2
title: A fact is found again
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
"""

MAIN = "import sys; from memstory.cli import main; sys.exit(main())"

HUNGRY = """
from memstory.controls import Oracle
from memstory.contract.target import TargetFactory

class Hungry(Oracle):
    async def open(self, env, *ports):
        await super().open(env, *ports)
        self.folder = env.workspace

    async def add(self, items, scope):
        with open(f"{self.folder}/notes", "ab") as file:
            file.write(b"x" * 200_000)
        return await super().add(items, scope)

class HungryFactory(TargetFactory):
    name, spec = "hungry", "hungry:HungryFactory"
    def capabilities(self, options):
        return frozenset({"add", "search"})
    def target(self):
        return Hungry()
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs two stories and returns the exit code and what was said."""
    (tmp_path / "a.story.yaml").write_text(STORIES.lstrip(), "utf-8")
    (tmp_path / "hungry.py").write_text(HUNGRY, "utf-8")

    def start(*options, limit=None, **environ):
        ended = subprocess.run(  # noqa: S603  (our own command)
            [sys.executable, "-c", MAIN, "run", "a.story.yaml", *options, "-p", "no:cacheprovider"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", **environ},
            preexec_fn=None if limit is None else partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)),
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return start


@pytest.fixture
def disk(tmp_path):
    """Return a function: kilobytes to a folder on a disk of that size."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mounted(size):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:  # noqa: S603  (fixed words)
            pytest.skip("only root may mount a small disk; the tests with a limit on files look at the same writers")
        return folder

    yield mounted
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S603, S607


WRITTEN = r"(selected\.jsonl|spool\.jsonl|results\.json|report\.md|report\.html|recordings\.jsonl|\.in-use)"


def names_what_to_do(said, folder):
    error = r"(?:File too large|No space left on device|only \d+ of \d+ bytes found room)"
    lines = [line for line in said.splitlines() if re.search(error, line)]
    told = (
        rf"{re.escape(str(folder))}/{WRITTEN} cannot be written: {error}\. Give its disk room, or choose another folder"
    )
    assert lines
    # The short summary cuts what the lines above it have whole.
    assert [line for line in lines if not re.search(told, line) and not line.startswith("ERROR ")] == []
    assert "Traceback" not in said
    assert "Errno" not in said
    return re.search(told, said)[1]


@pytest.mark.parametrize(
    ("limit", "first"),
    [(100, "selected.jsonl"), (700, "spool.jsonl"), (20_000, "report.html")],
)
def test_the_file_that_finds_no_room_is_named(run, tmp_path, limit, first):
    code, said = run("--target", "control:oracle", "--report", "out", limit=limit)
    assert code not in (0, 1), said
    assert names_what_to_do(said, tmp_path / "out") == first


@pytest.mark.parametrize("size", [4, 8, 16, 24])
def test_a_report_on_a_full_disk_is_told_with_its_file(run, disk, size):
    folder = disk(size) / "out"
    code, said = run("--target", "control:oracle", "--report", str(folder))
    assert code not in (0, 1), said
    names_what_to_do(said, folder)


def test_a_memory_that_finds_no_room_is_told_where_workspaces_are(run, disk):
    folder = disk(150)
    code, said = run("--target", "hungry:HungryFactory", "--report", "out", TMPDIR=str(folder))
    assert code == 1
    assert re.search(rf"No space left on device.*{re.escape(str(folder))}.*set TMPDIR", said), said


def test_a_memory_that_may_write_no_more_is_told_where_workspaces_are(run, tmp_path):
    (tmp_path / "temporary").mkdir()
    place = str(tmp_path / "temporary")
    code, said = run("--target", "hungry:HungryFactory", "--report", "out", limit=100_000, TMPDIR=place)
    assert code == 1
    assert re.search(rf"File too large.*{re.escape(place)}.*set TMPDIR", said), said
