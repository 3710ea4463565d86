"""A run: what it was made with, and its cases. The same value in memory, in results.json and in every report."""

from __future__ import annotations

import json
import os
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final, Literal, TypeVar, get_args

from memstory.contract.target import Tree
from memstory.results.outcomes import OUTCOMES, CaseResult, Outcome
from memstory.results.recording import RetrievalRecord
from memstory.results.secret_values import REDACTED

Key = TypeVar("Key")
Value = TypeVar("Value")
Schema = Literal["memstory.results/2"]
SCHEMA: Final[Schema] = get_args(Schema)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Shard `number` of `count` of a run, counted from 1.

    It has `cases` of the `of` cases that were selected; `digest` is that of all of them, equal in all shards of a run.
    `more` are the numbers of further shards that were merged into it.
    """

    number: int
    count: int
    cases: int
    of: int
    digest: str
    more: Sequence[int] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all shards that it holds."""
        return (self.number, *self.more)

    def __str__(self) -> str:
        if self.more:
            return f"shards {some([str(number) for number in self.numbers])} of {self.count}"
        return f"shard {self.number} of {self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a run was made with; `targets` has what each target said about itself, every distinct value once.

    What it was about (digests of stories and data, k, trials and seeds) is in its cases. `started` is ISO 8601.
    `shard` is null for a whole run, and for one that was merged.
    """

    memstory: str
    python: str
    platform: str
    processors: int | None
    started: str | None
    options: Mapping[str, Tree]
    targets: Mapping[str, Mapping[str, Sequence[str]]]
    shard: Part | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run found out; `cases` are ordered by story, target and row.

    `complete` is false for a run that was cut short: cases that had not ended are errors without trials. `redacted`
    counts what was taken out before anything was written. `steady` is in a baseline of several runs only: of each
    target, whether all of them found the same.
    """

    schema: Schema
    complete: bool
    fingerprint: Fingerprint
    summary: Mapping[Outcome, int]
    redacted: Mapping[str, int]
    cases: Sequence[CaseResult]
    steady: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRun:
    """A run under the name by which a reader knows it."""

    name: str
    run: Run


def make_run(cases: Sequence[CaseResult], fingerprint: Fingerprint, *, complete: bool = True) -> Run:
    """Return the run that has these cases, in their order and counted."""
    counts = Counter(case.outcome for case in cases)
    return Run(
        schema=SCHEMA,
        complete=complete,
        fingerprint=fingerprint,
        summary={outcome: counts[outcome] for outcome in OUTCOMES},
        redacted=_redaction_counts(cases, fingerprint),
        cases=tuple(sorted(cases, key=place_of)),
    )


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts S9 before S10.

    >>> sorted(["S10", "S9", "S9b"], key=natural)
    ['S9', 'S9b', 'S10']
    """
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(part)) if part.isascii() and part.isdigit() else (1, part) for part in parts)


def some(names: Sequence[str], shown: int = 8) -> str:
    """Return the first of the names, and how many more there are.

    >>> some(["S1", "S2", "S3"], 2)
    'S1, S2 and 1 more'
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key; keys and values in the order in which they came up.

    >>> by_key([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> quantity(1, "story"), quantity(2, "story"), quantity(0, "error")
    ('1 story', '2 stories', '0 errors')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def documents_of(record: RetrievalRecord) -> str:
    """Return how many documents were asked for, and how they came there where that was not by the run."""
    if record.preloaded is None:
        return quantity(record.documents, "document")
    held = (
        f"{quantity(record.documents, 'memory')} by the target's own count"
        if record.documents
        else "nobody says how many"
    )
    return f"the preloaded memories of {record.preloaded}, {held}"


def questions_of(record: RetrievalRecord) -> str:
    """Return how many questions were asked, and of how many they are a sample."""
    if record.drawn_from is None:
        return quantity(len(record.questions), "question")
    return f"{len(record.questions):,} of {quantity(record.drawn_from, 'question')}"


def _redaction_counts(cases: Sequence[CaseResult], fingerprint: Fingerprint) -> Mapping[str, int]:
    """Return how many values were taken out of the cases and of the options of the run, each kind even if none was."""
    total = Counter({"secrets": json.dumps(dict(fingerprint.options)).count(REDACTED), "texts": 0})
    for case in cases:
        total.update(case.redacted)
    return dict(total)


def place_of(case: CaseResult) -> tuple[Any, ...]:
    """Return the sort key of a case in a run."""
    return natural(case.story), case.target, natural(case.row or ""), case.id


def make_fingerprint(
    results: Sequence[CaseResult],
    *,
    started: str | None = None,
    options: Mapping[str, Tree] | None = None,
    shard: Part | None = None,
) -> Fingerprint:
    """Return the fingerprint of a run.

    Args:
        results: all cases of the run; what the targets said of themselves is taken from them.
        started: when it began, ISO 8601, None if not known.
        options: what was chosen on the command line and changes results, such as `{"chat": "offline"}`.
        shard: which part of a run this is; None for a whole run.
    """
    return Fingerprint(
        memstory=version("memstory"),
        python=platform.python_version(),
        platform=platform.platform(),
        processors=os.cpu_count(),
        started=started,
        options=options or {},
        targets={name: _about(results, name) for name in sorted({case.target for case in results})},
        shard=shard,
    )


def _about(results: Sequence[CaseResult], target: str) -> Mapping[str, Sequence[str]]:
    """Return all that a target said about itself, every distinct value once: stories may choose other embedders."""
    trials = (trial for case in results if case.target == target for trial in case.trials)
    said = by_key(pair for trial in trials for pair in trial.recording.about.items())
    return {name: sorted({*values}) for name, values in sorted(said.items())}
