"""What pytest reports to the waiting `memstory run`: where the report goes, and that pytest has ended."""

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


def messages_of(pid: int, folder: Path) -> dict[str, str]:
    """Return what the process `pid` has told to the one that has `folder`."""
    told: dict[str, str] = {}
    path = folder / _TOLD
    for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else ():
        # A target may have written there, or changed what we write with: a line that is not ours tells nothing.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            teller, word, value = json.loads(line)
            told |= {str(word): str(value)} if teller == pid else {}
    return told
