"""The matrix of outcomes, what flipped, shares by tag and operation, and what a target could not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.reporting.comparing.latency import timed_steps
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.runs import natural

JUDGED: Final[Sequence[Outcome]] = ("passed", "failed")
RETRIEVAL: Final = "retrieval"
_ALSO_SHOWN: Final = ("restart", "crash", "fault", "parallel", "advance", RETRIEVAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One story and its outcome by column; a column that was not asked is not there."""

    story: str
    title: str
    outcomes: Mapping[str, Outcome]
    slug: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """One story that passed in one of two columns and failed in the other."""

    story: str
    column: str
    outcome: str
    against: str
    was: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One story that some columns passed and others failed; `reason` is that of the first that failed."""

    story: str
    passed: Sequence[str]
    failed: Sequence[str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the judged stories with one tag, or of one operation, each column passed: `[passed, judged]`."""

    kind: str
    name: str
    columns: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inability:
    """What a column could not do, and for how many stories; `outcome` is unsupported, error or invalid."""

    column: str
    outcome: str
    reason: str
    stories: Sequence[str]


def rows_of(columns: Sequence[Column]) -> list[Row]:
    """Return every story once, in natural order."""
    first: dict[str, CaseResult] = {}
    for column in columns:
        for story, case in column.cases.items():
            first.setdefault(story, case)
    return [
        Row(
            story=story,
            title=first[story].title,
            slug=first[story].slug,
            outcomes={one.title: one.cases[story].outcome for one in columns if story in one.cases},
        )
        for story in sorted(first, key=natural)
    ]


def flips_between(column: Column, against: Column) -> Iterator[Flip]:
    """Yield the stories that both were judged on, and not alike."""
    for story in sorted(column.cases, key=natural):
        now, was = column.cases[story], against.cases.get(story)
        if was is not None and {now.outcome, was.outcome} == set(JUDGED):
            failed = now if now.outcome == "failed" else was
            yield Flip(
                story=story,
                column=column.title,
                outcome=now.outcome,
                against=against.title,
                was=was.outcome,
                reason=failed.reason or "",
            )


def disagreements_of(columns: Sequence[Column]) -> list[Disagreement]:
    """Return the stories on which columns that could be judged differ, in natural order."""
    found = []
    for row in rows_of(columns):
        passed, failed = ([title for title, was in row.outcomes.items() if was == word] for word in JUDGED)
        if passed and failed:
            first = next(one for one in columns if one.title == failed[0])
            reason = first.cases[row.story].reason or ""
            found.append(Disagreement(story=row.story, passed=passed, failed=failed, reason=reason))
    return found


def shares_of(columns: Sequence[Column]) -> list[Share]:
    """Return the shares by operation, then by tag; a group that nobody was judged on is left out."""
    groups: dict[tuple[str, str], set[str]] = {}
    for column in columns:
        for story, case in column.cases.items():
            for group in [*(("operation", op) for op in _operations(case)), *(("tag", tag) for tag in case.tags)]:
                groups.setdefault(group, set()).add(story)
    shares = [
        Share(kind=kind, name=name, columns={one.title: _counts(one, stories) for one in columns})
        for (kind, name), stories in sorted(groups.items())
    ]
    return [share for share in shares if any(judged for _, judged in share.columns.values())]


def inabilities_of(columns: Sequence[Column]) -> list[Inability]:
    """Return for each column why stories could not be judged, the most frequent reason first."""
    found = []
    for column in columns:
        reasons: dict[tuple[str, str], list[str]] = {}
        for story, case in column.cases.items():
            if case.outcome not in (*JUDGED, "measured"):
                reasons.setdefault((case.outcome, case.reason or "no reason was given"), []).append(story)
        found += [
            Inability(column=column.title, outcome=outcome, reason=reason, stories=sorted(stories, key=natural))
            for (outcome, reason), stories in sorted(reasons.items(), key=lambda item: -len(item[1]))
        ]
    return found


def _operations(case: CaseResult) -> set[str]:
    """Return what a story does, as far as any trial of it came."""
    found = {step.op for trial in case.trials for step in trial.times}
    if case.retrieval:
        found.add(RETRIEVAL)
    return found & {*timed_steps(), *_ALSO_SHOWN}


def _counts(column: Column, stories: set[str]) -> list[int]:
    judged = [column.cases[one].outcome for one in stories if one in column.cases]
    judged = [outcome for outcome in judged if outcome in JUDGED]
    return [judged.count("passed"), len(judged)]
