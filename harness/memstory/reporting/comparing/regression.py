"""A run compared with its baseline: what got worse, what could not be measured, what got better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from memstory.reporting.comparing.matrix import JUDGED
from memstory.reporting.comparing.paired import differences, lost_and_won
from memstory.reporting.views import shard_name
from memstory.results.likeness import differing_stories, what_differs
from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun
from memstory.scoring.statistics import sign_test

PASS: Final = 0
REGRESSION: Final = 1
UNMEASURED: Final = 2
_UNLIKELY: Final = 0.05

_Lists: TypeAlias = dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What was found, a line each; `judged` counts the cases that both runs were judged on."""

    judged: int
    regressions: list[str] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    improvements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The exit code: a regression that was seen counts, whatever else could not be measured."""
        if self.regressions:
            return REGRESSION
        return UNMEASURED if self.unmeasured else PASS


def gate(baseline: NamedRun, current: NamedRun, *, least_cases: int = 1) -> Gate:
    """Return how `current` stands against `baseline`, of which it is to be another run of the same targets.

    A case that passed and now fails, or is no longer supported, is a regression; so is a metric whose interval of the
    difference lies on the bad side of 0, which is all that counts of cases that only took measures. What broke, is
    missing, or is another story or other data could not be measured.
    """
    old, new = _by_id(baseline), _by_id(current)
    found: _Lists = {"regressions": [], "unmeasured": list(_unlike(baseline, current)), "improvements": [], "notes": []}
    unlike = differing_stories([baseline, current])
    comparable = {name: was for name, was in old.items() if was.name not in unlike}
    for name, was in comparable.items():
        for kind, text in _of_case(was, new[name]) if name in new else [_missing(was)]:
            found[kind].append(f"{name}: {text}")
    if more := len(new.keys() - old.keys()):
        found["notes"].append(f"the baseline is narrower than the run: {more} of {len(new)} cases are not in it")
    found["notes"] += [f"{name}: not in the baseline, {case.outcome}" for name, case in new.items() if name not in old]
    judged = sum(name in new and {was.outcome, new[name].outcome} <= set(JUDGED) for name, was in comparable.items())
    if judged < least_cases:
        found["unmeasured"].append(f"too few cases were judged in both runs: {judged}, wanted are {least_cases}")
    return Gate(judged=judged, **found)


def _by_id(named: NamedRun) -> Mapping[str, CaseResult]:
    return {case.id: case for case in named.run.cases}


def _unlike(baseline: NamedRun, current: NamedRun) -> Iterator[str]:
    for named in (baseline, current):
        if part := shard_name(named.run):
            yield f"{named.name} is only {part}: merge all shards first ('memstory merge')"
    if not current.run.complete:
        yield "the run was cut short: cases that had not ended have no result"
    yield from what_differs([baseline, current])


def _missing(was: CaseResult) -> tuple[str, str]:
    if was.outcome not in (*JUDGED, "measured"):
        return "notes", f"was {was.outcome}, and was not run"
    return "unmeasured", f"was {was.outcome}, and was not run"


def _of_case(was: CaseResult, now: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield `(kind, text)` for what changed in one case."""
    before, after = was.outcome, now.outcome
    because = f": {now.reason}" if now.reason else ""
    match before, after:
        case "passed", "failed" | "unsupported":
            yield "regressions", f"passed, now {after}{because}"
        case "failed" | "unsupported" | "error" | "invalid", "passed":
            yield "improvements", f"was {before}, now passes"
        case "passed" | "failed" | "measured", "error" | "invalid":
            yield "unmeasured", f"was {before}, now {after}{because}"
        case _ if before != after:
            yield "notes", f"was {before}, now {after}{because}"
        case _:
            pass
    if {before, after} <= set(JUDGED) or before == after == "measured":
        yield from _of_metrics(was, now)


def _of_questions(lost: Sequence[str], won: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what changed by question; many more losses than wins are no chance, however small the mean difference."""
    for kind, number, other, verb, ids in (
        ("regressions", len(lost), len(won), "lost", lost),
        ("improvements", len(won), len(lost), "won", won),
    ):
        if ids:
            chance = sign_test(number, other)
            said = f"{verb} {', '.join(ids)} (sign test: p = {chance:.3f})"
            yield kind if chance < _UNLIKELY else "notes", said


def _of_metrics(was: CaseResult, now: CaseResult) -> Iterator[tuple[str, str]]:
    yield from _of_questions(*lost_and_won(was, now))
    for found in differences(was, now):
        at = f" at {found.level}" if found.level else ""
        text = (
            f"{found.metric}{at} {found.value:+.3f} over {found.questions} questions "
            f"(95% interval {found.low:+.3f} to {found.high:+.3f})"
        )
        if found.is_worse:
            yield "regressions", text
        elif found.is_better:
            yield "improvements", text
        elif found.value:
            yield "notes", f"{text}: within chance"
