"""What the tests of the reference share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

from memstory.contract.cache_folder import cache_folder
from memstory.contract.errors import SetupError
from memstory_reference.adapters.embedding import weights


def _beside(name: str) -> ModuleType:
    # Under importlib mode test modules cannot be imported by name.
    full = f"memstory_reference_tests_{name}"
    spec = util.spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
    assert spec
    assert spec.loader
    module = util.module_from_spec(spec)
    sys.modules[full] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def kill_writers() -> Callable[[str, Path, int], dict[str, int]]:
    """`kill_writers(__file__, folder, kills)` kills what this file's `write` does, and has its `verify` look."""
    killing: Callable[[str, Path, int], dict[str, int]] = _beside("killing").kill_writers
    return killing


@pytest.fixture(scope="session")
def minilm_weights() -> weights.WeightsFolder:
    """The real weights; the test is skipped where they are not."""
    try:
        return weights.find_weights(cache_folder(os.environ))
    except SetupError as problem:
        pytest.skip(str(problem))


_IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("mount") is not None


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (fixed words)


@pytest.fixture
def small_disk(tmp_path):
    """Yield a folder on a disk of three megabytes, and a function that makes it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = _run("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)) if _IS_ROOT else None
    if mounted is None or mounted.returncode:
        pytest.skip("a full disk needs a tmpfs, and only root outside of a strict container may mount one")
    yield folder, lambda: _run("mount", "-o", "remount,size=300m", str(folder))
    _run("umount", "-l", str(folder))
