"""What remains of a killed run: its finished cases, a line each, those that were selected at its start, and histories.

The latter are what each history of a retrieval task gave, with which such a run can go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from memstory.contract.codec import Misfit, decode, encode_lean
from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.results.folder.whole_files import append_line, lines_of_json, make_again, write_text
from memstory.results.outcomes import CaseResult
from memstory.results.totals import run_again

SPOOL_NAME: Final = "spool.jsonl"
SELECTED_NAME: Final = "selected.jsonl"
HISTORIES_NAME: Final = "histories.jsonl"

ISOLATE: Final = "--isolate gives each case its own process, so that none can end the others"
"""What to do where a target ended the process of the run."""


class Spool:
    """Appends cases to a file in `folder`; several processes may do so at once."""

    def __init__(self, folder: Path, name: str = SPOOL_NAME) -> None:
        self._path = folder / name
        self.torn = 0
        """How many lines were met, as the file was read, whose writer died in the middle."""

    def clear(self) -> None:
        """Forget what an earlier run left."""
        self._path.unlink(missing_ok=True)

    def append(self, result: CaseResult) -> None:
        """Write one case; SetupError where the disk does not take it."""
        append_line(self._path, encode_lean(result))

    def read(self) -> list[CaseResult]:
        """Return the cases in the order they ended; one that ran again is one case, with all its trials.

        An absent file holds none.
        """
        self.torn = 0
        results: dict[str, CaseResult] = {}
        for tree in lines_of_json(self._path):
            if not isinstance(tree, dict) or "id" not in tree:  # of no version: somebody else wrote it
                self.torn += 1
                continue
            result = self._decode(tree)
            before = results.pop(result.id, None)
            results[result.id] = run_again(before, result) if before else result
        return list(results.values())

    def _decode(self, tree: Tree) -> CaseResult:
        try:
            result: CaseResult = decode(CaseResult, tree)
        except Misfit as error:
            raise SetupError(
                f"{self._path} was written by another version of memstory ({error}). Run the stories again."
            ) from error
        return result


def write_selected(folder: Path, cases: Iterable[CaseResult]) -> None:
    """Write down cases that have no trials yet."""
    make_again(folder)
    lines = (f"{json.dumps(encode_lean(case), separators=(',', ':'))}\n" for case in cases)
    write_text(folder / SELECTED_NAME, "".join(lines))


def read_selected(folder: Path) -> list[CaseResult]:
    """Return the cases that were selected; none where the file is absent."""
    return Spool(folder, SELECTED_NAME).read()


def lost_cases(selected: Iterable[CaseResult], recorded: Sequence[CaseResult], why: str) -> list[CaseResult]:
    """Return those of `selected` that have no result, as errors."""
    known = {case.id for case in recorded}
    return [
        replace(case, outcome="error", reason=f"{case.where}: it has no result: {why}")
        for case in selected
        if case.id not in known
    ]


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
        for row in lines_of_json(self._path):
            with suppress(KeyError, TypeError):  # Its writer was killed: that history runs again.
                found[row["key"]] = row["gave"]
        return found


def history_key(*parts: Tree) -> str:
    """Return the key of a history: it is the same only where all that bears on what it gives is."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
