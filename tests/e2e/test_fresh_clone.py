"""What a newcomer does: clone, type the README's command, read the report."""

import json
import os
import re
import shutil
import subprocess
import sys
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


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A virtual environment with the wheel and no extra, and a folder with one story."""
    folder = tmp_path_factory.mktemp("plain")
    assert sh(f"'{sys.executable}' -m hatchling build -t wheel -d '{folder}'", ROOT).returncode == 0
    (wheel,) = folder.glob("*.whl")
    pip = f"venv/bin/python -m pip install -q -c '{ROOT}/constraints.txt'"
    done = sh(f"'{sys.executable}' -m venv venv && {pip} '{wheel}'", folder)
    assert done.returncode == 0, done.stdout
    (folder / "one.story.yaml").write_text(
        "story: ONE\ntitle: A fact is found\nsteps:\n"
        "  - add: The relay hums at night.\n    save: {fact: id}\n"
        "  - search: relay hums\n    expect: {hits: {first: fact}}\n",
        "utf-8",
    )
    yield folder
    shutil.rmtree(folder)


def test_harness_alone_needs_no_vendor(plain):
    oracle = sh("venv/bin/python -m pytest one.story.yaml --target control:oracle", plain)
    assert oracle.returncode == 0, oracle.stdout
    assert "memstory: 1 passed" in oracle.stdout
    installed = sh("venv/bin/python -m pip list", plain).stdout
    assert "chromadb" not in installed
    assert "numpy" not in installed


@pytest.mark.parametrize("words", ["one.story.yaml", "--bundled", "--bundled generic"])
def test_harness_alone_runs_on_its_own_target_and_says_what_the_reference_needs(plain, words):
    done = sh(f"venv/bin/memstory run {words} -q --report out", plain)
    assert done.returncode in {0, 1}, done.stdout
    (said,) = re.findall(r"^The stories ran on fts5, for .*$", done.stdout, re.MULTILINE)
    assert re.search(r"pip install 'memstory\[reference\] @ file:///.*\.whl'", said)
    assert "Traceback" not in done.stdout
    summary = json.loads((plain / "out/results.json").read_text("utf-8"))["summary"]
    assert (summary["error"], summary["invalid"]) == (0, 0)
    assert summary["passed"] > (20 if "--bundled" in words else 0)


def test_reference_alone_shows_its_help_and_says_what_to_install_as_the_harness_does(plain):
    shown = sh("venv/bin/memstory-reference --help && venv/bin/memstory-reference memory list --help", plain)
    assert (shown.returncode, shown.stdout.count("usage: memstory-reference")) == (0, 2), shown.stdout
    of_both = [
        sh(f"venv/bin/{words}", plain).stdout
        for words in ("memstory run one.story.yaml --target topics", "memstory-reference memory list")
    ]
    assert of_both[1].count("\n") == 1, of_both[1]
    cure = r"Install it with: pip install 'memstory\[reference\] @ file:///.*\.whl'"
    assert [len(re.findall(cure, out)) for out in of_both] == [1, 1], of_both


def test_coverage_and_html_reports_of_other_plugins_work_beside_stories(plain):
    others = sh("venv/bin/python -m pip install -q pytest-cov pytest-html pytest-randomly pytest-xdist", plain)
    assert others.returncode == 0, others.stdout
    (plain / "mine.py").write_text(
        "from memstory.controls import OracleFactory\n\n\nclass Mine(OracleFactory):\n    name = 'mine'\n", "utf-8"
    )
    for starter in ("python -m pytest one.story.yaml", "memstory run one.story.yaml"):
        for workers in ("", "-n 2"):
            words = f"--target mine:Mine --cov=mine --cov-report=json --html=page.html --report out {workers}"
            done = sh(f"rm -rf coverage.json page.html && venv/bin/{starter} {words}", plain)
            assert done.returncode == 0, done.stdout
            assert "memstory: 1 passed" in done.stdout
            assert json.loads((plain / "coverage.json").read_text("utf-8"))["totals"]["percent_covered"] == 100
            assert "one.story.yaml::ONE" in (plain / "page.html").read_text("utf-8")
