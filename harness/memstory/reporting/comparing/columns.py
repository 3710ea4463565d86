"""What is compared: each target of each run is a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from memstory.contract.errors import SetupError
from memstory.reporting import views
from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One target of one run; `cases` by story. A story that could not be read is in every column of its run."""

    title: str
    run: NamedRun
    target: str
    cases: Mapping[str, CaseResult]

    @property
    def about(self) -> Mapping[str, Sequence[str]]:
        """What the target said about itself."""
        return self.run.run.fingerprint.targets.get(self.target, {})


def columns_of(runs: Sequence[NamedRun]) -> list[Column]:
    """Return the columns in order of runs and targets; one is named by its run too where another has its target."""
    counts = Counter(target for named in runs for target in views.targets_of(named.run))
    return [
        Column(
            title=target if counts[target] == 1 else f"{named.name}: {target}",
            run=named,
            target=target,
            cases={case.name: case for case in named.run.cases if case.target in (target, "")},
        )
        for named in runs
        for target in views.targets_of(named.run)
    ]


def named_column(columns: Sequence[Column], name: str) -> Column:
    """Return the column of that title, or of that target where only one has it.

    Raises:
        SetupError: no column has this name, or several have.
    """
    found = [one for one in columns if one.title == name] or [one for one in columns if one.target == name]
    if len(found) == 1:
        return found[0]
    titles = [one.title for one in columns]
    near = get_close_matches(name, titles, n=1)
    hint = f" Did you mean '{near[0]}'?" if near and not found else ""
    said = "several columns are" if found else "no column is"
    raise SetupError(f"{said} named '{name}'.{hint} Known: {', '.join(titles)}")


def opponent(column: Column, columns: Sequence[Column], against: Column | None = None) -> Column | None:
    """Return what a column is compared with: `against`, else the same target in an earlier run, else the first column.

    None for the first column itself.
    """
    if against is not None:
        return None if against.title == column.title else against
    earlier = columns[: columns.index(column)]
    return next((one for one in earlier if one.target == column.target), earlier[0] if earlier else None)
