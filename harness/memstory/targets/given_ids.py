"""Ids for backends that want them of their caller: none is ever given twice, not even after a crash."""

from __future__ import annotations

from pathlib import Path

from memstory.contract.target import Environment


class GivenIds:
    """Counts what it gives, and in the workspace how often this memory was opened."""

    def __init__(self, env: Environment) -> None:
        # A byte for each opening: of several processes that open it at once, each adds one and gets its own number.
        with (Path(env.workspace) / "opened").open("ab", buffering=0) as opened:
            opened.write(b".")
            self._prefix = f"m{env.seed}.{opened.tell() - 1}"
        self._given = 0

    def next(self) -> str:
        """Return an id that was not given before."""
        self._given += 1
        return f"{self._prefix}.{self._given}"
