"""What each history of a retrieval task gave, written as the run goes, so that one that was killed can go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from memstory.contract.target import Tree
from memstory.results.folder.whole_files import append_line

HISTORIES_NAME: Final = "histories.jsonl"


class Histories:
    """A file of a line for each history; several processes may append at once. `clean` takes secrets out."""

    def __init__(self, folder: Path, clean: Callable[[Tree], Tree]) -> None:
        self._path = folder / HISTORIES_NAME
        self._clean = clean
        self._kept: dict[str, Tree] | None = None

    def take(self, key: str) -> Tree | None:
        """Return what a run before has written under `key`."""
        if self._kept is None:
            self._kept = self._read()
        return self._kept.get(key)

    def keep(self, key: str, tree: Tree) -> None:
        """Write what a history gave; SetupError where the disk does not take it."""
        append_line(self._path, {"key": key, "gave": self._clean(tree)})

    def _read(self) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            try:
                row = json.loads(line)
                found[row["key"]] = row["gave"]
            except (ValueError, KeyError, TypeError):
                continue  # Empty, or its writer was killed: that history runs again.
        return found


def history_key(*parts: Tree) -> str:
    """Return the key of a history: it is the same only where all that bears on what it gives is."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
