"""The commands that the documents promise are the commands that run."""

import ast
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
MEASURING = {
    "baseline",
    "bench",
    "compare",
    "exam",
    "lifelines",
    "upgrades",
}  # they tell figures, and have nothing to fail
# What needs more than one Python, a wheel with a model, or every library and npm.
BY_HAND = {"bill", "faults", "lowest", "model", "pythons"}
SESSIONS = {
    "stories",
    "backends",
    "browser",
    "controls",
    "dist",
    "docs",
    "harness",
    "long",
    "tests",
    "lint",
    "types",
    "imports",
    "walk",
    *BY_HAND,
    *MEASURING,
}


def readme_commands() -> dict[str, str]:
    """The shell commands of README.md that set up and run a nox session, by session."""
    return {match[1]: match[0] for match in re.finditer(r"^python3 -m venv .* -s (\w+)$", README, re.MULTILINE)}


def test_readme_has_one_command_for_stories_and_one_for_tests():
    assert set(readme_commands()) == {"stories", "tests"}


def test_ci_runs_the_very_tests_command_of_the_readme():
    lines = [line.strip() for line in (ROOT / ".ci/run").read_text("utf-8").splitlines()]
    assert readme_commands()["tests"] in lines


@pytest.mark.parametrize("session", sorted(SESSIONS - MEASURING - BY_HAND))
def test_ci_runs_every_session_that_can_fail(session):
    words = [(ROOT / ".ci" / name).read_text("utf-8").replace(";", " ").split() for name in ("run", "nightly")]
    assert session in itertools.chain(*words)


def test_every_nox_session_has_a_docstring_of_one_line():
    functions = [
        node for node in ast.parse((ROOT / "noxfile.py").read_text("utf-8")).body if isinstance(node, ast.FunctionDef)
    ]
    docstrings = {node.name: ast.get_docstring(node) or "" for node in functions if node.decorator_list}
    assert set(docstrings) == SESSIONS
    assert [name for name, text in docstrings.items() if len(text.splitlines()) != 1] == []


def test_the_commit_hook_runs_the_lint_session():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    assert entries == ["nox -s lint"]


def test_the_comparison_is_a_part_of_the_published_table_with_its_header():
    tables = (ROOT / "reports/baseline/report.md").read_text("utf-8").split("\n\n")
    part = README.partition("## The comparison, in part\n")[2].partition("\n## ")[0]
    header, *rows = [line for line in part.splitlines() if line.startswith("|")]
    assert len(rows) > 5
    (published,) = [lines for table in tables if (lines := table.splitlines()) and lines[0] == header]
    assert [row for row in rows if row not in published] == [], "copy the lines of that table in report.md"


def test_every_link_between_documents_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reports").glob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(("target", "code"), [("hybrid", 0), ("control:stale", 1)])
def test_the_first_story_of_the_readme_runs_in_a_clone_that_has_the_harness_alone(tmp_path, target, code):
    """A plain install has no pytest-asyncio, whose settings are in pyproject.toml."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"), "utf-8")
    (tmp_path / "tea.story.yaml").write_text(re.search(r"```yaml\n(story: tea\n.*?)```", README, re.DOTALL)[1], "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:asyncio", "tea.story.yaml", "--target", target]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert done.returncode == code, done.stdout + done.stderr
    assert f"{1 - code} passed, {code} failed" in done.stdout
