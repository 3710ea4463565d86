"""The how-to page on MCP servers works word by word."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.targets.discovery import bundled_tables

PAGE = (Path(__file__).parents[3] / "docs/how-to/mcp.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def typed(command, folder):
    words = shlex.split(command)
    programs = {
        "memstory": [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"],
        "python": [sys.executable],
    }
    return subprocess.run(  # noqa: S603  (our own command page)
        [*programs[words[0]], *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_ready_table_is_on_the_page():
    assert set(re.findall(r"^\| `(mcp-[a-z-]+)` \|", PAGE, re.MULTILINE)) == {
        name for name in bundled_tables() if name.startswith("mcp-")
    }


@pytest.mark.slow
def test_the_page_works_word_by_word(tmp_path):
    (tmp_path / "memstory.toml").write_text(blocks("toml")[0], "utf-8")
    (tmp_path / "test_ours.py").write_text(blocks("python")[0], "utf-8")
    inspect, call, run = blocks("sh")
    explain, stories = run.strip().splitlines()
    drafted = typed(inspect, tmp_path)
    assert (drafted.returncode, "[targets.ours.search]" in drafted.stdout) == (0, True), drafted.stderr
    replied = typed(call.replace("\\\n", " "), tmp_path)
    assert (replied.returncode, replied.stdout.count("The bus leaves at six.")) == (0, 3), (
        replied.stdout + replied.stderr
    )
    told = typed(explain, tmp_path)
    assert re.search(r"^ours +yes", told.stdout, re.MULTILINE), told.stdout + told.stderr
    done = typed(stories, tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    contract = typed("python -m pytest test_ours.py", tmp_path)
    assert (contract.returncode, "passed" in contract.stdout) == (0, True), contract.stdout + contract.stderr
