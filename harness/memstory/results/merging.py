"""One run of several: the shards of a run, or runs of the same cases. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memstory.contract.errors import SetupError
from memstory.results.likeness import by_cause, differing_stories
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Fingerprint, NamedRun, Part, Run, by_key, make_run, quantity

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    """A run that is a shard."""

    name: str
    run: Run
    part: Part


def merge_shards(runs: Sequence[NamedRun]) -> Run:
    """Return one run of all cases, as a run without shards gives it; fields for times are those of the shards.

    Raises:
        SetupError: these are not all the shards of one run, each once; the message says what is wrong.
    """
    shards = list(_shards(runs))
    wrong = [*_no_shards(runs)] or [*_unlike(shards)] or [*_not_all_once(shards), *_overlaps(shards)]
    # Shards need not share any story.
    wrong = wrong or by_cause(differing_stories(runs))
    if wrong:
        more = len(wrong) - _SHOWN
        lines = [*wrong[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise SetupError("these are not the shards of one run:\n" + "\n".join(f"  {line}" for line in lines))
    cases = [case for shard in shards for case in shard.run.cases]
    return make_run(
        cases, _fingerprint([shard.run.fingerprint for shard in shards]), complete=all(map(_is_whole, shards))
    )


def incomplete_shards(runs: Sequence[NamedRun]) -> list[str]:
    """Return the shards that did not come to their end, each with how far it came."""
    return [
        f"{shard.name} has {_ended_count(shard)} of its {quantity(shard.part.cases, 'case')}"
        for shard in _shards(runs)
        if not _is_whole(shard)
    ]


def worst_of(runs: Sequence[Run]) -> Run:
    """Return one run of several of the same cases; it says of which targets all of them found the same.

    Each case is that of the run in which it ended worst: what fails now and then is not known to pass.
    """
    several = zip(*(run.cases for run in runs), strict=True)
    cases = [min(same, key=lambda case: (case.severity, not case.leaked)) for same in several]
    steady = {target: not varying for target, varying in varying_cases(runs).items()}
    return replace(make_run(cases, runs[0].fingerprint), redacted=runs[0].redacted, steady=steady)


def varying_cases(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return for each target the ids of the cases in which not all runs found the same."""
    found: dict[str, list[str]] = {}
    for first, *others in zip(*(run.cases for run in runs), strict=True):
        varying = found.setdefault(first.target, [])
        if any(_findings(case) != _findings(first) for case in others):
            varying.append(first.id)
    return found


def _findings(case: CaseResult) -> object:
    """Return what a memory that does the same finds again: no times, no generated ids, no words."""
    questions = (asked for trial in case.trials for record in trial.recording.retrieval for asked in record.questions)
    places = [(asked.id, asked.places) for asked in questions]
    return case.id, case.outcome, [trial.outcome for trial in case.trials], places, case.metrics


def _shards(runs: Sequence[NamedRun]) -> Iterator[_Shard]:
    for one in runs:
        if one.run.fingerprint.shard is not None:
            yield _Shard(name=one.name, run=one.run, part=one.run.fingerprint.shard)


def _is_whole(shard: _Shard) -> bool:
    return shard.run.complete and _ended_count(shard) == shard.part.cases


def _ended_count(shard: _Shard) -> int:
    return sum(not case.is_lost for case in shard.run.cases)


def _no_shards(runs: Sequence[NamedRun]) -> Iterator[str]:
    for one in runs:
        if one.run.fingerprint.shard is None:
            yield (
                f"{one.name} is not a shard: it ran without --shard, was merged already, or its report was written"
                " after it was killed"
            )


def _unlike(shards: Sequence[_Shard]) -> Iterator[str]:
    """Yield what is to be the same in all shards of one run, on whatever machine each ran, and is not."""
    yield from _differing("the number of shards", {shard.name: shard.part.count for shard in shards})
    selected = {shard.name: f"{shard.part.of} cases ({shard.part.digest[:8]})" for shard in shards}
    yield from _differing("what was selected", selected)
    yield from _differing("memstory", {shard.name: shard.run.fingerprint.memstory for shard in shards})
    yield from _differing("python", {shard.name: shard.run.fingerprint.python for shard in shards})
    yield from _differing("options", {shard.name: dict(shard.run.fingerprint.options) for shard in shards})


def _differing(what: str, values: Mapping[str, object]) -> Iterator[str]:
    told = by_key((str(value), name) for name, value in values.items())
    if len(told) > 1:
        yield f"{what} is " + ", ".join(f"{value} in {' and '.join(names)}" for value, names in told.items())


def _not_all_once(shards: Sequence[_Shard]) -> Iterator[str]:
    count = shards[0].part.count
    found = by_key((shard.part.number, shard.name) for shard in shards)
    for number in range(1, count + 1):
        names = found.get(number, [])
        if not names:
            yield f"shard {number} of {count} is missing"
        if len(names) > 1:
            yield f"shard {number} of {count} is there {len(names)} times: {', '.join(names)}"


def _overlaps(shards: Sequence[_Shard]) -> Iterator[str]:
    holders = by_key((case.id, shard.name) for shard in shards for case in shard.run.cases)
    for case_id, names in holders.items():
        if len(names) > 1:
            yield f"the case {case_id} is in {' and '.join(names)}"


def _fingerprint(prints: Sequence[Fingerprint]) -> Fingerprint:
    targets = by_key(pair for one in prints for pair in one.targets.items())
    return replace(
        prints[0],
        platform=" and ".join(sorted({one.platform for one in prints})),
        processors=prints[0].processors if len({one.processors for one in prints}) == 1 else None,
        started=min((one.started for one in prints if one.started), default=None),
        targets={target: _unite(said) for target, said in sorted(targets.items())},
        shard=None,
    )


def _unite(said: Sequence[Mapping[str, Sequence[str]]]) -> Mapping[str, Sequence[str]]:
    """Return all that a target said about itself in several runs."""
    found = by_key((name, value) for about in said for name, values in about.items() for value in values)
    return {name: sorted({*values}) for name, values in sorted(found.items())}
