"""What one more capability would unlock: the stories that a target cannot run only because it lacks that one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from memstory.language.capabilities import LACKS
from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Run

_SHOWN: Final = 5
ADVICE: Final = (
    "Declare a capability only if the memory has it: `memstory.conformance.TargetContract` tests what is declared, and "
    "the stories that it unlocks judge the rest."
)


def unlocks(run: Run) -> Mapping[str, Sequence[tuple[str, int]]]:
    """Return for each target the capabilities that alone keep cases from running, with how many, the most first."""
    found: dict[str, Counter[str]] = {}
    for case in views.with_outcome(run, "unsupported"):
        lacking = _lacking(case)
        # An option is of one library: others have nothing to declare.
        if len(lacking) == 1 and not lacking[0].startswith("option."):
            found.setdefault(case.target, Counter()).update(lacking)
    return {
        target: sorted(counts.items(), key=lambda one: (-one[1], one[0])) for target, counts in sorted(found.items())
    }


def unlocks_in_words(run: Run) -> str:
    """Return one sentence about a run of one target; empty for several, or where no single capability unlocks a case.

    A run of several is a comparison, whose reader cannot change its targets.
    """
    found = unlocks(run)
    if len(views.targets_of(run)) != 1 or not found:
        return ""
    ((target, counts),) = found.items()
    first, *others = [f"{n} more with '{name}'" for name, n in counts[:_SHOWN]]
    return f"What {target} would run if it could and said so: {', '.join([first, *others])}."


def unlocks_table(run: Run) -> str:
    """Return the same of all targets as markdown."""
    rows = [
        [inline(target), ", ".join(f"{n} with `{name}`" for name, n in counts[:_SHOWN])]
        for target, counts in unlocks(run).items()
    ]
    return f"{table(['Target', 'One more capability would run'], rows)}\n\n{ADVICE}" if rows else ""


def _lacking(case: CaseResult) -> Sequence[str]:
    _, said, names = (case.reason or "").rpartition(LACKS)
    lacking = names.split(", ") if said else []
    return lacking if {*lacking} <= {*case.needs} else []
