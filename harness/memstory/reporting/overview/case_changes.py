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


def changes_by_target(last: Run | None, run: Run) -> dict[str, str]:
    """Return for each target a few words, such as `+2 -1`, `same`, `same, 3 new` or `new`; empty without a last run."""
    if last is None:
        return {}
    before = {case.id for case in last.cases if not case.is_lost}
    changes = changes_since(last, run)
    cases: dict[str, list[bool]] = {}
    for case in run.cases:
        cases.setdefault(case.target, []).append(case.id in before)
    return {
        target: changes_in_words([each for each in changes if each.target == target], known)
        for target, known in cases.items()
    }


def changes_in_words(changes: Sequence[Change], known: Sequence[bool]) -> str:
    """Return a few words for the changes of cases, each of which the last run had (`known`) or not.

    >>> changes_in_words([Change(case="S5[a]", name="S5", target="a", was="failed", now="passed")], [True, False])
    '+1, 1 new'
    >>> changes_in_words([], [True]), changes_in_words([], [False])
    ('same', 'new')
    """
    if not any(known):
        return "new"
    better, worse = sum(one.is_better for one in changes), sum(one.is_worse for one in changes)
    others = len(changes) - better - worse
    signs = [f"{sign}{count}" for sign, count in (("+", better), ("-", worse), ("~", others)) if count]
    new = len(known) - sum(known)
    return (" ".join(signs) or "same") + (f", {new} new" if new else "")
