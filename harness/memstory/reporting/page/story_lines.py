"""The lines of the story behind a case, if its file is available and unchanged since the run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from memstory.bundled import bundled_stories
from memstory.language.text import MAX_CHARACTERS, pieces
from memstory.results.outcomes import CaseResult

LinesOf: TypeAlias = Callable[[CaseResult], "StoryLines | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLines:
    """The text of a document; `first` is the number of its first line in the file."""

    first: int
    lines: Sequence[str]


def lines_in(roots: Sequence[Path], clean: Callable[[str], str]) -> LinesOf:
    """Return what finds the lines of a case's story below `roots`; `clean` takes out what must not be shown.

    The story is known by its digest, so a file that changed since the run gives nothing. Nothing either where the texts
    of the case were redacted.
    """
    read: dict[str, Sequence[tuple[int, str]]] = {}

    def find(case: CaseResult) -> StoryLines | None:
        name = case.where.rsplit(":", 2)[0]
        if case.redacted.get("texts") or not case.digest:
            return None
        if name not in read:
            read[name] = _documents(name, roots)
        of_row = f"\n# row {case.row}" if case.row else ""
        for first, text in read[name]:
            if _digest(text.strip() + of_row) == case.digest:
                above = len(text) - len(text.lstrip("\n"))
                return StoryLines(first=first + above, lines=clean(text.strip("\n")).split("\n"))
        return None

    return find


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _documents(name: str, roots: Sequence[Path]) -> Sequence[tuple[int, str]]:
    """Return the documents of a file, each with the number of its first line."""
    for root in (*roots, bundled_stories().parent):
        try:
            text = (root / name).read_bytes().decode()
        except (OSError, ValueError):
            continue
        return tuple(pieces(text.removeprefix("\ufeff"))) if len(text) <= MAX_CHARACTERS else ()
    return ()
