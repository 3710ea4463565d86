"""One run of several: the shards of a run, or runs of the same cases. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from memstory.contract.errors import SetupError
from memstory.results.likeness import by_cause, differing_stories, likeness_facts
from memstory.results.outcomes import OUTCOMES, CaseResult, Outcome
from memstory.results.runs import Fingerprint, NamedRun, Part, Run, by_key, make_run, place_of, quantity

_AND = " and "
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSource:
    """A shard by the name that a reader knows: the run without its cases, and these, as often as they are asked for."""

    name: str
    head: Run
    cases: Iterable[CaseResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRun:
    """The shards of one run as one: `head` is it without its cases. Fields for times are those of the shards.

    `short` has a line for each shard that did not come to its end, with how far it came.
    """

    head: Run
    short: Sequence[str]


def merge_shards(
    sources: Sequence[ShardSource], *, partial: bool = False, look: Callable[[CaseResult], object] = lambda _: None
) -> MergedRun:
    """Return the shards of one run as one; all cases are gone through for it, and `look` is given each of them.

    A shard may itself be several that were merged. With `partial` some may be missing: what comes out is a shard too.

    Raises:
        SetupError: these are not the shards of one run, each once; the message says what is wrong.
    """
    parts = {one.name: part for one in sources if (part := one.head.fingerprint.shard)}
    _refuse([*_no_shards(sources)] or [*_unlike(sources, parts)] or [*_not_all_once(parts, partial=partial)])
    audit = _Audit({source.name: Counter() for source in sources})
    for name, case in _in_order(sources):
        audit.add(name, case)
        look(case)
    _refuse([*audit.overlaps(), *audit.miscounts(sources), *by_cause(differing_stories(audit.differing(sources)))])
    short = [
        f"{one.name} has {audit.ended[one.name]} of its {quantity(parts[one.name].cases, 'case')}"
        for one in sources
        if not one.head.complete or audit.ended[one.name] != parts[one.name].cases
    ]
    made_with = _fingerprint([one.head.fingerprint for one in sources], [*parts.values()])
    return MergedRun(head=audit.head(made_with, complete=not short), short=short)


class _Audit:
    """What the cases of several shards come to, in numbers, and what of it cannot be of one run."""

    def __init__(self, outcomes: Mapping[str, Counter[Outcome]]) -> None:
        self.ended: Counter[str] = Counter()
        self._outcomes = outcomes
        self._redacted: Counter[str] = Counter()
        self._before: tuple[str, str] = ("", "")
        self._holders: dict[str, list[str]] = {}
        # By the hash of its name what each row of the present story is about: a story may have a million of them.
        self._facts: dict[int, int] = {}
        self._story = ""
        self._suspects: set[int] = set()

    def add(self, name: str, case: CaseResult) -> None:
        """Take the next case, which is of the shard `name`; they come in the order of a run."""
        self._outcomes[name][case.outcome] += 1
        self._redacted.update(case.redacted)
        self.ended[name] += not case.is_lost
        if self._before[0] == case.id:
            self._holders.setdefault(case.id, [self._before[1]]).append(name)
        self._before = (case.id, name)
        if self._story != case.story:
            self._story, self._facts = case.story, {}
        key, facts = hash(case.name), hash(frozenset(likeness_facts(case)))
        if self._facts.setdefault(key, facts) != facts:
            self._suspects.add(key)

    def overlaps(self) -> Iterator[str]:
        for case_id, names in self._holders.items():
            yield f"the case {case_id} is in {' and '.join(names)}"

    def miscounts(self, sources: Sequence[ShardSource]) -> Iterator[str]:
        for source in sources:
            found = self._outcomes[source.name]
            for outcome, count in source.head.summary.items():
                if count != found[outcome]:
                    yield f"{source.name} says that {count} {outcome}, and {found[outcome]} of its cases did"

    def differing(self, sources: Sequence[ShardSource]) -> list[NamedRun]:
        """Return the shards with those stories alone that may differ: another target may not have come as far."""
        if not self._suspects:
            return []
        return [
            NamedRun(
                name=source.name,
                run=replace(source.head, cases=[case for case in source.cases if hash(case.name) in self._suspects]),
            )
            for source in sources
        ]

    def head(self, fingerprint: Fingerprint, *, complete: bool) -> Run:
        """Return the run that has these cases, without them."""
        counts = sum(self._outcomes.values(), Counter[Outcome]())
        none = make_run((), fingerprint, complete=complete)
        return replace(
            none,
            summary={outcome: counts[outcome] for outcome in OUTCOMES},
            redacted={
                kind: none.redacted.get(kind, 0) + self._redacted[kind] for kind in {**none.redacted, **self._redacted}
            },
        )


def _in_order(sources: Sequence[ShardSource]) -> Iterator[tuple[str, CaseResult]]:
    """Yield the cases of all sources in the order of a run, each with the name of its source."""
    for _, name, case in heapq.merge(*map(_cases_by_place, sources), key=itemgetter(0)):
        yield name, case


def _cases_by_place(source: ShardSource) -> Iterator[tuple[object, str, CaseResult]]:
    before = None
    for case in source.cases:
        place = place_of(case)
        if before is not None and place < before:
            raise SetupError(f"{source.name} has the case {case.id} out of order: merge the file that the run wrote")
        before = place
        yield place, source.name, case


def _refuse(wrong: Sequence[str]) -> None:
    if wrong:
        more = len(wrong) - _SHOWN
        lines = [*wrong[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise SetupError("these are not the shards of one run:\n" + "\n".join(f"  {line}" for line in lines))


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


def _no_shards(sources: Sequence[ShardSource]) -> Iterator[str]:
    for one in sources:
        if one.head.fingerprint.shard is None:
            yield (
                f"{one.name} is not a shard: it ran without --shard, was merged already, or its report was written"
                " after it was killed"
            )


def _unlike(sources: Sequence[ShardSource], parts: Mapping[str, Part]) -> Iterator[str]:
    """Yield what is to be the same in all shards of one run, on whatever machine each ran, and is not."""
    prints = {one.name: one.head.fingerprint for one in sources}
    yield from _differing("the number of shards", {name: part.count for name, part in parts.items()})
    selected = {name: f"{part.of} cases ({part.digest[:8]})" for name, part in parts.items()}
    yield from _differing("what was selected", selected)
    yield from _differing("memstory", {name: one.memstory for name, one in prints.items()})
    yield from _differing("python", {name: one.python for name, one in prints.items()})
    yield from _differing("options", {name: dict(one.options) for name, one in prints.items()})


def _differing(what: str, values: Mapping[str, object]) -> Iterator[str]:
    told = by_key((str(value), name) for name, value in values.items())
    if len(told) > 1:
        yield f"{what} is " + ", ".join(f"{value} in {' and '.join(names)}" for value, names in told.items())


def _not_all_once(parts: Mapping[str, Part], *, partial: bool) -> Iterator[str]:
    count = next(iter(parts.values())).count
    found = by_key((number, name) for name, part in parts.items() for number in part.numbers)
    for number in sorted({*found, *range(1, count + 1)}):
        names = found.get(number, [])
        if not 1 <= number <= count:
            yield f"there is no shard {number} of {count}, which {' and '.join(names)} has"
        elif not names and not partial:
            yield f"shard {number} of {count} is missing"
        elif len(names) > 1:
            yield f"shard {number} of {count} is there {len(names)} times: {', '.join(names)}"


def _fingerprint(prints: Sequence[Fingerprint], parts: Sequence[Part]) -> Fingerprint:
    targets = by_key(pair for one in prints for pair in one.targets.items())
    return replace(
        prints[0],
        # One that was merged has several already.
        platform=_AND.join(sorted({name for one in prints for name in one.platform.split(_AND)})),
        processors=prints[0].processors if len({one.processors for one in prints}) == 1 else None,
        started=min((one.started for one in prints if one.started), default=None),
        targets={target: _unite(said) for target, said in sorted(targets.items())},
        shard=_part(parts),
    )


def _part(parts: Sequence[Part]) -> Part | None:
    """Return the shard that has all of these; None where they are the whole run."""
    first, *more = sorted(number for part in parts for number in part.numbers)
    if len(more) + 1 == parts[0].count:
        return None
    return replace(parts[0], number=first, more=more, cases=sum(part.cases for part in parts))


def _unite(said: Sequence[Mapping[str, Sequence[str]]]) -> Mapping[str, Sequence[str]]:
    """Return all that a target said about itself in several runs."""
    found = by_key((name, value) for about in said for name, values in about.items() for value in values)
    return {name: sorted({*values}) for name, values in sorted(found.items())}
