"""Links from a report to the lines of a story and to the case on the page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memstory.reporting.escaping import inline
from memstory.results.outcomes import CaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Makes links that work from `folder`; stories are looked for below `roots`. Empty, it makes none."""

    folder: Path | None = None
    page: str = ""
    roots: Sequence[Path] = ()

    def to_case(self, case: CaseResult, text: str | None = None) -> str:
        """Return markdown that opens the case on the page."""
        shown = inline(text or case.id)
        return f"[{shown}]({self.page}#case={quote(f'{case.name}@{case.target}', safe='')})" if self.page else shown

    def to_place(self, where: str, text: str | None = None) -> str:
        """Return markdown that opens a place, `file:line:column`, where the file is at hand."""
        shown = inline(text or where)
        file, _, rest = where.partition(":")
        line = rest.partition(":")[0]
        if self.folder is None or not line.isdigit():
            return shown
        for root in self.roots:
            if (root / file).is_file():
                path = Path(os.path.relpath(root / file, self.folder)).as_posix()
                return f"[{shown}]({quote(path)}#L{line})"
        return shown
