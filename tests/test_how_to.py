"""What the documents tell people to type works as they say, and so do the examples in the code."""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "harness", ROOT / "reference_impl")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def modules_with_examples() -> list[str]:
    paths = [(source, path) for source in SOURCES for path in sorted(source.rglob("*.py"))]
    return [
        ".".join(path.relative_to(source).with_suffix("").parts)
        for source, path in paths
        if ">>> " in path.read_text("utf-8")
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings_are_true(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


def test_own_adapter_keeps_the_contract_of_all_targets(tmp_path):
    adapter, contract, *_ = blocks(ROOT / "docs/how-to/test-your-own-memory.md", "python")
    (tmp_path / "my_memory.py").write_text(adapter, "utf-8")
    (tmp_path / "test_my_memory.py").write_text(contract, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "test_my_memory.py", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, "passed" in done.stdout) == (0, True), done.stdout + done.stderr
