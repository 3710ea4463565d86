"""What `memstory run` is told by the pytest that it waits for: where the report goes, and that pytest has ended."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Final

SUPERVISOR: Final = "MEMSTORY_SUPERVISOR"
"""The variable with the folder of the process that waits for this one."""

ENDED: Final = "ended"
REPORT: Final = "report"
_TOLD: Final = "told.jsonl"


def tell_supervisor(word: str, value: str = "") -> None:
    """Add a line to what this process has told; where nobody waits for it, nothing happens."""
    folder = os.environ.get(SUPERVISOR)
    if folder:
        with contextlib.suppress(OSError), (Path(folder) / _TOLD).open("a", encoding="utf-8") as file:
            file.write(json.dumps([os.getpid(), word, value]) + "\n")


def told_by(pid: int, folder: Path) -> dict[str, str]:
    """Return what the process `pid` has told to the one that has `folder`."""
    if not (folder / _TOLD).exists():
        return {}
    lines = (json.loads(line) for line in (folder / _TOLD).read_text("utf-8").splitlines())
    return {word: value for teller, word, value in lines if teller == pid}
