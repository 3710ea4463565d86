"""selected.jsonl: the cases of a run, on disk before the first one runs, so that a lost case is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from memstory.contract.codec import encode_lean
from memstory.results.folder.spool import Spool
from memstory.results.folder.whole_files import make_again, write_text
from memstory.results.outcomes import CaseResult

SELECTED_NAME: Final = "selected.jsonl"

ISOLATE: Final = "--isolate gives each case its own process, so that none can end the others"
"""What to do where a target ended the process of the run."""


def write_selected(folder: Path, cases: Iterable[CaseResult]) -> None:
    """Write down cases that have no trials yet."""
    make_again(folder)
    lines = (f"{json.dumps(encode_lean(case), separators=(',', ':'))}\n" for case in cases)
    write_text(folder / SELECTED_NAME, "".join(lines))


def read_selected(folder: Path) -> list[CaseResult]:
    """Return the cases that were selected; none where the file is absent."""
    return Spool(folder, SELECTED_NAME).read()


def lost(selected: Iterable[CaseResult], recorded: Sequence[CaseResult], why: str) -> list[CaseResult]:
    """Return those of `selected` that have no result, as errors."""
    known = {case.id for case in recorded}
    return [
        replace(case, outcome="error", reason=f"{case.where}: it has no result: {why}")
        for case in selected
        if case.id not in known
    ]
