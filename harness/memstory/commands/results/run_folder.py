"""Where a run left its files, from what a person types: the folder, or one of the files in it."""

from __future__ import annotations

from pathlib import Path

from memstory.errors import SetupError
from memstory.reporting.writing import RESULTS_NAME
from memstory.results.spool import SPOOL_NAME


def run_folder(typed: Path) -> Path:
    """Return the folder of a run that ended; `typed` may be the folder itself or `results.json` in it."""
    folder = typed if typed.is_dir() else typed.parent
    if not typed.exists():
        raise SetupError(f"no file or folder {typed}: name the folder of a run, such as reports/latest")
    if (folder / SPOOL_NAME).exists() and not (folder / RESULTS_NAME).exists():
        raise SetupError(
            f"{folder} holds a run that was killed: 'memstory report {folder}' first writes what it had done"
        )
    return folder
