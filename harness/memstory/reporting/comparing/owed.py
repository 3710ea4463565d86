"""What memories owe: obligations met and leaks avoided (two separate scores), and how corrections were stored.

They are never pooled: a memory that remembers nothing avoids every leak and meets no obligation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from memstory.language.matchers.hits import Kept
from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Run

TAG: Final = "owed"
"""The tag of the stories that count here."""

KEPT: Final[Sequence[str]] = get_args(Kept)
HEADER: Final = ("obligations met", "leaks avoided", "cannot do", "not judged", *KEPT)
HOW_TO_READ: Final = (
    "Obligations met: passed stories with the tag `owed`, of those that were judged. Leaks avoided: stories after "
    "which all that must be gone was gone, of those that looked for it, passed or failed. The two are never "
    "combined: a memory that stores nothing avoids every leak and meets no obligation. The last columns count "
    "corrections: only the new value is stored, both are, the outdated one is found first, only the old one is "
    "stored, or nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """What one memory was found to owe and to pay; `kept` counts corrections by how they were kept."""

    judged: int
    met: int
    looked: int
    leaks: int
    unable: int
    broken: int
    kept: Mapping[str, int]

    @property
    def avoided(self) -> int:
        """How many stories left nothing that must be gone."""
        return self.looked - self.leaks

    @property
    def cells(self) -> Sequence[str]:
        """Return the cells under `HEADER`."""
        kept = [str(self.kept[name]) if self.kept else "-" for name in KEPT]
        return (_of(self.met, self.judged), _of(self.avoided, self.looked), str(self.unable), str(self.broken), *kept)


def owed_by(cases: Iterable[CaseResult]) -> Owed | None:
    """Return what the cases of one target say; None where none is about it."""
    owed = [case for case in cases if TAG in case.tags]
    if not owed:
        return None
    counts = Counter(case.outcome for case in owed)
    judged = [case for case in owed if case.outcome in ("passed", "failed")]
    leaks = [case.leaked for case in judged if case.leaked is not None]
    return Owed(
        judged=len(judged),
        met=counts["passed"],
        looked=len(leaks),
        leaks=sum(leaks),
        unable=counts["unsupported"],
        broken=counts["error"] + counts["invalid"],
        kept=Counter(kind for case in owed for kind in _kinds(case)),
    )


def best_first(owed: Mapping[str, Owed]) -> Sequence[tuple[str, Owed]]:
    """Return what each memory owes, first the one that meets most obligations and then leaks least."""
    return sorted(owed.items(), key=lambda pair: (-pair[1].met, pair[1].leaks))


def owed_section(run: Run) -> str:
    """Return the table of all targets as markdown; nothing where no story is about it."""
    by_target = {target: [case for case in run.cases if case.target == target] for target in views.targets_of(run)}
    owed = {target: found for target, cases in by_target.items() if (found := owed_by(cases))}
    rows = [[inline(target), *found.cells] for target, found in best_first(owed)]
    return f"{table(['Target', *HEADER], rows, right=range(1, len(HEADER) + 1))}\n\n{HOW_TO_READ}" if rows else ""


def owed_lines(was: Run, now: Run) -> Iterator[str]:
    """Yield a line for each target whose scores are others now, over the cases that both runs have."""
    both = {case.id for case in was.cases} & {case.id for case in now.cases}
    for target in views.targets_of(now):
        before, after = (
            owed_by(case for case in run.cases if case.target == target and case.id in both) for run in (was, now)
        )
        if before and after and before.cells[:2] != after.cells[:2]:
            scores = zip(HEADER[:2], after.cells, before.cells, strict=False)
            yield f"{target}: " + ", ".join(f"{name} {new} (before {old})" for name, new, old in scores)


def _kinds(case: CaseResult) -> Iterator[str]:
    verdicts = case.deciding.verdicts if case.deciding else ()
    yield from (verdict.kind for verdict in verdicts if verdict.kind is not None and verdict.kind in KEPT)


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"
