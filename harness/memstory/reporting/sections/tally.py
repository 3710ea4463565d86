"""The totals of a run whose cases are not all in memory: each is given once, in the order of the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Final
from zlib import crc32

from memstory.reporting.sections.columns import JUDGED, RECALL, TargetTotals
from memstory.reporting.sections.outcomes import (
    ALONE,
    ESSENTIAL,
    EVERY,
    GROUPS,
    OTHER,
    CapabilityScore,
    Obligations,
    groups_of,
    obligations_of,
)
from memstory.results.outcomes import OUTCOMES, WRONG, CaseResult, Outcome

SHOWN_WRONG: Final = 3_000
"""So many cases of stories in which something went wrong are shown of a large run."""

SAMPLE: Final = 1_000
"""So many of the others, about."""


class Tally:
    """What reports say of all cases of a run, and which of them they show."""

    def __init__(self) -> None:
        self.cases = 0
        self.lost = 0
        self.seconds = 0.0
        self.owed: dict[str, Obligations] = {}
        self._counts: dict[str, Counter[Outcome]] = defaultdict(Counter)
        self._recalls: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        self._groups: dict[str, dict[str, Counter[Outcome]]] = {name: {} for name in (EVERY, *GROUPS, OTHER, ALONE)}
        self._stories: dict[str, list[str]] = {name: [] for name in self._groups}
        self._story: dict[str, Counter[Outcome]] = {}
        self._first: CaseResult | None = None
        # An ordered set: the stories in which something went wrong, as far as they may be shown.
        self._wrong: dict[str, None] = {}

    def add(self, case: CaseResult) -> None:
        """Take the next case of the run."""
        self.cases += 1
        self.lost += case.is_lost
        self.seconds += case.seconds
        self._counts[case.target][case.outcome] += 1
        if case.outcome in JUDGED and RECALL in case.metrics:
            self._recalls[case.target][0] += case.metrics[RECALL]
            self._recalls[case.target][1] += 1
        if owed := obligations_of([case]):
            known = self.owed.get(case.target)
            self.owed[case.target] = known + owed if known else owed
        if case.outcome in WRONG and len(self._wrong) < SHOWN_WRONG:
            self._wrong[case.name] = None
        if self._first is None or self._first.story != case.story:
            self._close_story()
            self._first = case
        self._story.setdefault(case.target, Counter())[case.outcome] += 1

    @property
    def targets(self) -> list[str]:
        """Every target that was asked, sorted; a story that could not be read was for none of them."""
        return sorted(name for name in self._counts if name)

    @property
    def columns(self) -> list[TargetTotals]:
        """The totals of each target; a story that could not be read is in all of them."""
        return [
            TargetTotals(title=name, counts=self._with_unreadable(self._counts, name), recall=self._recall(name))
            for name in self.targets
        ]

    def capability_scores(self) -> list[CapabilityScore]:
        """Return the groups of stories as for a small run, but that all rows of a story count as one."""
        self._close_story()
        return [
            CapabilityScore(
                name=name,
                stories=self._stories[name],
                columns={target: self._with_unreadable(found, target) for target in self.targets},
            )
            for name, found in self._groups.items()
            if self._stories[name]
        ]

    def chooser(self) -> Callable[[CaseResult], bool]:
        """Return what says of a case whether it is shown: always its whole row is, on all targets.

        Of the stories in which something went wrong these are the first, of the others an even sample and all that a
        report shows by themselves.
        """
        most = max(1, SHOWN_WRONG // max(1, len(self.targets)))
        wrong, every = frozenset([*self._wrong][:most]), max(1, self.cases // SAMPLE)
        return lambda case: (
            case.name in wrong or ESSENTIAL in case.tags or crc32(case.name.encode("utf-8", "replace")) % every == 0
        )

    def _with_unreadable(self, counts: Mapping[str, Counter[Outcome]], target: str) -> Mapping[Outcome, int]:
        found = counts.get(target, Counter()) + counts.get("", Counter())
        return {outcome: found[outcome] for outcome in OUTCOMES}

    def _recall(self, target: str) -> float | None:
        total, count = self._recalls[target]
        return total / count if count else None

    def _close_story(self) -> None:
        """Put the story that was counted into its groups: only the last case tells which targets were asked."""
        if self._first is None:
            return
        is_shared = len(self._story) > 1 or "" in self._story or len(self.targets) == 1
        for name in (EVERY, *groups_of(self._first)) if is_shared else (ALONE,):
            self._stories[name].append(self._first.story)
            for target, counts in self._story.items():
                self._groups[name].setdefault(target, Counter()).update(counts)
        self._first, self._story = None, {}
