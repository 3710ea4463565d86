"""Totals by target: how the stories ended, and how much retrieval found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.results.outcomes import OUTCOMES, Outcome
from memstory.scoring.metrics import mean

RECALL: Final = "recall@5"
"""The score that stands for retrieval; a mean over the judged stories that have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTotal:
    """One column: its outcomes, its mean recall@5 over `scored` stories, None where there is none."""

    name: str
    counts: Mapping[Outcome, int]
    recall: float | None
    scored: int

    @property
    def judged(self) -> int:
        """How many stories passed or failed."""
        return self.counts["passed"] + self.counts["failed"]


def target_totals(columns: Sequence[Column]) -> list[TargetTotal]:
    """Return the total of each column, in their order."""
    return [_total(column) for column in columns]


def _total(column: Column) -> TargetTotal:
    counts = Counter(case.outcome for case in column.cases.values())
    recalls = [
        case.metrics[RECALL]
        for case in column.cases.values()
        if case.outcome in {"passed", "failed"} and RECALL in case.metrics
    ]
    return TargetTotal(
        name=column.title,
        counts={outcome: counts[outcome] for outcome in OUTCOMES},
        recall=mean(recalls) if recalls else None,
        scored=len(recalls),
    )
