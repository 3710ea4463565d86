"""What changed since the last run into the same folder, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memstory.results.outcomes import Outcome
from memstory.results.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A case that both runs have, and that ended in another way."""

    case: str
    name: str
    target: str
    was: Outcome
    now: Outcome

    @property
    def is_better(self) -> bool:
        """Whether it passes now."""
        return self.now == "passed"

    @property
    def is_worse(self) -> bool:
        """Whether it passed before."""
        return self.was == "passed"


def changes_since(last: Run | None, run: Run) -> list[Change]:
    """Return the cases that ended otherwise than in `last`, in the order of `run`; none if there is no last run."""
    before = {case.id: case for case in last.cases if not case.is_lost} if last else {}
    return [
        Change(case=case.id, name=case.name, target=case.target, was=before[case.id].outcome, now=case.outcome)
        for case in run.cases
        if case.id in before and before[case.id].outcome != case.outcome
    ]


def changes_in_words(changes: Sequence[Change]) -> str:
    """Return a few words: `+2 -1`, empty if nothing changed.

    >>> changes_in_words([Change(case="S5[a]", name="S5", target="a", was="failed", now="passed")])
    '+1'
    """
    better, worse = sum(one.is_better for one in changes), sum(one.is_worse for one in changes)
    others = len(changes) - better - worse
    return " ".join(
        [*([f"+{better}"] if better else []), *([f"-{worse}"] if worse else []), *([f"~{others}"] if others else [])]
    )
