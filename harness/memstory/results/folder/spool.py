"""What remains of a killed run: its finished cases, one line each, and those that were selected at its start."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memstory.contract.codec import Misfit, decode, encode_lean
from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.results.folder.whole_files import make_again, write_text, writing
from memstory.results.outcomes import CaseResult
from memstory.results.totals import run_again

SPOOL_NAME: Final = "spool.jsonl"
SELECTED_NAME: Final = "selected.jsonl"

ISOLATE: Final = "--isolate gives each case its own process, so that none can end the others"
"""What to do where a target ended the process of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolContent:
    """What a spool holds; `torn` counts lines whose writer died in the middle."""

    results: tuple[CaseResult, ...]
    torn: int


class Spool:
    """Appends cases to a file in `folder`; several processes may do so at once."""

    def __init__(self, folder: Path, name: str = SPOOL_NAME) -> None:
        self._path = folder / name

    def clear(self) -> None:
        """Forget what an earlier run left."""
        self._path.unlink(missing_ok=True)

    def append(self, result: CaseResult) -> None:
        """Write one case by one write; SetupError where the disk does not take the line."""
        # Every line begins with a line end, so that a torn line before it does not spoil it.
        line = f"\n{json.dumps(encode_lean(result), separators=(',', ':'))}\n".encode()
        with writing(self._path):
            make_again(self._path.parent)
            descriptor = os.open(self._path, os.O_APPEND | os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644)
            try:
                written = os.write(descriptor, line)
            finally:
                os.close(descriptor)
            if written < len(line):
                raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes found room")

    def read(self) -> list[CaseResult]:
        """Return the cases in the order they ended; one that ran again is one case, with all its trials."""
        return list(self.load().results)

    def load(self) -> SpoolContent:
        """Return the cases together with the number of torn lines; an absent file holds nothing."""
        if not self._path.exists():
            return SpoolContent(results=(), torn=0)
        results: dict[str, CaseResult] = {}
        torn = 0
        for line in self._path.read_bytes().splitlines():
            if not line:
                continue
            try:
                tree = json.loads(line)
            except (ValueError, RecursionError):
                torn += 1
                continue
            if not isinstance(tree, dict) or "id" not in tree:  # of no version: somebody else wrote it
                torn += 1
                continue
            result = self._decode(tree)
            before = results.pop(result.id, None)
            results[result.id] = run_again(before, result) if before else result
        return SpoolContent(results=tuple(results.values()), torn=torn)

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
