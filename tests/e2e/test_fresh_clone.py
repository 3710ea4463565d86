"""What a newcomer does: clone, type the README's command, read the report."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def sh(command: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell as a person would: without the virtual environment that runs this test."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VIRTUAL_ENV", "NOX"))
    }
    return subprocess.run(  # noqa: S602  (the README's own words)
        command,
        shell=True,
        cwd=folder,
        env={**inherited, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )


@pytest.fixture
def clone(tmp_path) -> Path:
    done = sh(f"git clone --quiet '{ROOT}' clone", tmp_path)
    assert done.returncode == 0, done.stdout
    return tmp_path / "clone"


def test_readme_command_runs_the_stories_and_leaves_a_report(clone):
    # LF-21: the reference stack is what the gate stories pass on. H-04: no target is named, so it is the default.
    command = re.search(r"^python3 -m venv .* -s stories$", (clone / "README.md").read_text("utf-8"), re.MULTILINE)
    assert command is not None
    done = sh(command[0], clone)
    assert done.returncode == 0, done.stdout
    results = json.loads((clone / "reports/latest/results.json").read_text("utf-8"))
    outcomes = {case["story"]: case["outcome"] for case in results["cases"] if case["target"] == "topics"}
    assert outcomes["S5"] == outcomes["S6"] == "passed"
    assert results["summary"]["failed"] == results["summary"]["error"] == results["summary"]["invalid"] == 0
    report = (clone / "reports/latest/report.md").read_text("utf-8")
    assert "stand-in" in report
    assert sh("git status --porcelain", clone).stdout == ""


def test_harness_alone_needs_no_vendor_and_says_what_the_default_target_lacks(tmp_path):
    """The wheel without extras: the oracle control runs a story, the reference says what to install."""
    python = tmp_path / "venv/bin/python"
    build = f"'{sys.executable}' -m hatchling build -t wheel -d '{tmp_path}'"
    assert sh(build, ROOT).returncode == 0
    (wheel,) = tmp_path.glob("*.whl")
    setup = sh(
        f"'{sys.executable}' -m venv venv && venv/bin/python -m pip install -q -c '{ROOT}/constraints.txt' '{wheel}'",
        tmp_path,
    )
    assert setup.returncode == 0, setup.stdout
    (tmp_path / "one.story.yaml").write_text(
        "story: ONE\ntitle: A fact is found\nsteps:\n"
        "  - add: The relay hums at night.\n    save: {fact: id}\n"
        "  - search: relay hums\n    expect: {hits: {first: fact}}\n",
        "utf-8",
    )
    oracle = sh(f"'{python}' -m pytest one.story.yaml --target control:oracle", tmp_path)
    assert oracle.returncode == 0, oracle.stdout
    assert "1 passed" in oracle.stdout
    reference = sh(f"'{python}' -m pytest one.story.yaml", tmp_path)
    assert reference.returncode != 0
    assert "memstory[reference]" in reference.stdout
    installed = sh(f"'{python}' -m pip list", tmp_path).stdout
    assert "chromadb" not in installed
    assert "numpy" not in installed
    with zipfile.ZipFile(wheel) as archive:
        assert "memstory/stories/s5_memory_recall.yaml" in archive.namelist()
    shutil.rmtree(tmp_path / "venv")
