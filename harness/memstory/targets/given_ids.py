"""Ids for backends that want them of their caller: none is ever given twice, not even after a crash."""

from __future__ import annotations

from pathlib import Path

from memstory.contract.target import Environment


class GivenIds:
    """Counts what it gives, and in the workspace how often this memory was opened."""

    def __init__(self, env: Environment) -> None:
        path = Path(env.workspace) / "opened"
        times = int(path.read_text("utf-8")) + 1 if path.exists() else 0
        path.write_text(str(times), "utf-8")
        self._prefix = f"m{env.seed}.{times}"
        self._given = 0

    def next(self) -> str:
        """Return an id that was not given before."""
        self._given += 1
        return f"{self._prefix}.{self._given}"
