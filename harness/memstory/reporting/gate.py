"""A run compared with its baseline: what got worse, what could not be measured, what got better.

How sure a loss has to be depends on what the baseline knows of the target: `Steadiness`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from memstory.language.matchers.means import metric_of
from memstory.reporting.sections.columns import JUDGED, columns_of, shard_name
from memstory.reporting.sections.costs import latencies
from memstory.reporting.sections.differences import Difference, differences, lost_and_won
from memstory.reporting.sections.outcomes import obligation_changes
from memstory.results.likeness import differing_stories, run_differences
from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun, quantity, some
from memstory.scoring.statistics import sign_test

PASS: Final = 0
REGRESSION: Final = 1
UNMEASURED: Final = 2
_UNLIKELY: Final = 0.05
_VERY_UNLIKELY: Final = 0.01
_LEAST_CALLS: Final = 20
"""The slow end of fewer calls is that of a single one."""

_NOISE_MS: Final = 1.0

_Lists: TypeAlias = dict[str, list[str]]


class Steadiness(Enum):
    """What a baseline knows of a target: whether it finds the same in each run."""

    STEADY = "the same in several runs: any loss is a regression"
    VARYING = "not the same in several runs: a loss is a regression if both tests say so, at 1%"
    UNKNOWN = "one run: a loss is a regression if one of the tests says so, at 5%"

    @property
    def confidence(self) -> float:
        """Of the interval."""
        return 1 - (_VERY_UNLIKELY if self is Steadiness.VARYING else _UNLIKELY)


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


def _slow_ends(named: NamedRun) -> Mapping[str, Mapping[str, float]]:
    """Return by target and operation the p95 of its calls in ms, without the embedder where the target can tell."""
    found: dict[str, dict[str, float]] = {}
    for one in latencies(columns_of([named])):
        if one.count >= _LEAST_CALLS:
            found.setdefault(one.column, {})[one.operation] = (one.memory or one.whole).p95_ms
    return found


def gate(baseline: NamedRun, current: NamedRun, *, least_cases: int = 1, slower: float | None = None) -> Gate:
    """Return how `current` compares with `baseline`, of which it is to be another run of the same targets.

    A case that passed and now fails, or is no longer supported, is a regression; so is a metric that fell by more than
    chance, which is all that counts of cases that only took measures. What broke, is missing, or is another story or
    other data could not be measured: a line for each cause. With `slower`, so is a p95 that is more than so many times
    that of the baseline.
    """
    old, new = _by_id(baseline), _by_id(current)
    found: _Lists = {"regressions": [], "unmeasured": list(_unlike(baseline, current)), "improvements": [], "notes": []}
    unlike = differing_stories([baseline, current])
    comparable = {name: was for name, was in old.items() if was.name not in unlike}
    alike: dict[tuple[str, str], list[str]] = {}
    for name, was in comparable.items():
        now = new.get(name)
        for kind, text in _of_case(was, now, _steadiness(baseline, was)) if now else [_missing(was)]:
            # One server that is gone breaks each case for the same reason.
            alike.setdefault((kind, text), []).append(name)
    if lost := [name for name, case in new.items() if case.is_lost and not current.run.complete]:
        alike = {key: [name for name in names if name not in lost] for key, names in alike.items()}
    for (kind, text), names in alike.items():
        if names:
            found[kind].append(f"{some(names)}: {text}")
    for kind, text in _of_times(baseline, current, slower) if slower else ():
        found[kind].append(text)
    found["notes"] += obligation_changes(baseline.run, current.run)
    found["notes"] += _not_in_baseline([case for name, case in new.items() if name not in old], len(new))
    judged = sum(name in new and {was.outcome, new[name].outcome} <= set(JUDGED) for name, was in comparable.items())
    # Where all stories are other ones, that is the cause.
    if judged < least_cases and (comparable or not found["unmeasured"]):
        found["unmeasured"].append(f"too few cases were judged in both runs: {judged}, wanted are {least_cases}")
    return Gate(judged=judged, **found)


def _of_times(baseline: NamedRun, current: NamedRun, slower: float) -> Iterator[tuple[str, str]]:
    before, now = _slow_ends(baseline), _slow_ends(current)
    if not before:
        yield "unmeasured", f"no operation has {_LEAST_CALLS} calls in the baseline, which tell its slow end"
    for target, operations in before.items():
        for name, was in operations.items():
            later = now.get(target, {}).get(name, 0.0)
            if later > was * slower and later - was > _NOISE_MS:
                yield (
                    "regressions",
                    f"{target}: p95 of {name} {later:.1f} ms, was {was:.1f} ms ({later / was:.1f} times)",
                )


def _by_id(named: NamedRun) -> Mapping[str, CaseResult]:
    return {case.id: case for case in named.run.cases}


def _steadiness(baseline: NamedRun, case: CaseResult) -> Steadiness:
    if case.target not in baseline.run.steady:
        return Steadiness.UNKNOWN
    return Steadiness.STEADY if baseline.run.steady[case.target] else Steadiness.VARYING


def _unlike(baseline: NamedRun, current: NamedRun) -> Iterator[str]:
    for named in (baseline, current):
        if part := shard_name(named.run):
            yield f"{named.name} is only {part}: merge all shards first ('memstory merge')"
    if not current.run.complete:
        lost = [case.id for case in current.run.cases if case.is_lost]
        yield "the run was cut short" + (
            f": {quantity(len(lost), 'case')} without a result ({some(lost)})" if lost else ""
        )
    yield from run_differences([baseline, current])


def _not_in_baseline(cases: Sequence[CaseResult], every: int) -> Iterator[str]:
    if cases:
        failed = [case.id for case in cases if case.outcome == "failed"]
        those = f", of which {len(failed)} failed: {some(failed)}" if failed else ""
        yield f"the baseline is narrower than the run: it lacks {len(cases)} of {quantity(every, 'case')}{those}"


def _missing(was: CaseResult) -> tuple[str, str]:
    kind = "unmeasured" if was.outcome in (*JUDGED, "measured") else "notes"
    return kind, "in the baseline, and was not run"


def _of_case(was: CaseResult, now: CaseResult, steadiness: Steadiness) -> Iterator[tuple[str, str]]:
    """Yield `(kind, text)` for what changed in one case."""
    before, after = was.outcome, now.outcome
    because = f": {now.reason}" if now.reason else ""
    match before, after:
        case "passed", "failed" | "unsupported":
            yield "regressions", f"passed, now {after}{because}"
        case "failed" | "unsupported" | "error" | "invalid", "passed":
            yield "improvements", f"was {before}, now passes"
        case "passed" | "failed" | "measured", "error" | "invalid" | "exhausted":
            yield "unmeasured", f"was judged, now {after}{because}"
        case _ if before != after:
            yield "notes", f"was {before}, now {after}{because}"
        case _:
            pass
    if was.leaked is False and now.leaked and (before, after) == ("failed", "failed"):
        yield "regressions", f"failed before, and now something is left that must be gone{because}"
    if {before, after} <= set(JUDGED) or before == after == "measured":
        yield from _of_questions(*lost_and_won(was, now), steadiness)
        for found in differences(was, now, steadiness.confidence):
            if found.value:
                yield _of_metric(found, steadiness)


def _of_questions(lost: Sequence[str], won: Sequence[str], steadiness: Steadiness) -> Iterator[tuple[str, str]]:
    """Yield what changed by question; many more losses than wins are not due to chance, however small the mean."""
    for kind, number, other, verb, ids in (
        ("regressions", len(lost), len(won), "lost", lost),
        ("improvements", len(won), len(lost), "won", won),
    ):
        if ids and steadiness is Steadiness.STEADY:
            yield kind, f"{verb} {', '.join(ids)}"
        elif ids:
            chance = sign_test(number, other)
            said = f"{verb} {', '.join(ids)} (sign test: p = {chance:.3f})"
            yield kind if chance < _UNLIKELY and steadiness is Steadiness.UNKNOWN else "notes", said


def _of_metric(found: Difference, steadiness: Steadiness) -> tuple[str, str]:
    at = f" at {found.level}" if found.level else ""
    text = f"{found.metric}{at} {found.value:+.3f} over {quantity(found.questions, 'question')}"
    got_worse = (found.value < 0) != metric_of(found.metric).less_is_better
    if steadiness is Steadiness.STEADY:
        return "regressions" if got_worse else "improvements", text
    text += f" ({steadiness.confidence:.0%} interval {found.low:+.3f} to {found.high:+.3f}"
    sure = found.is_worse or found.is_better
    if steadiness is Steadiness.VARYING:
        many, few = (found.worse_in, found.better_in) if got_worse else (found.better_in, found.worse_in)
        chance = sign_test(many, few)
        text += f", sign test: p = {chance:.3f}"
        sure = sure and chance < _VERY_UNLIKELY
    if not sure:
        return "notes", f"{text}): within chance"
    return "regressions" if got_worse else "improvements", f"{text})"
