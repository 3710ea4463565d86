"""How long operations took, with embedding time separate: the median and the slow tail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

from memstory.language.words import WORDS
from memstory.reporting.comparing.columns import Column
from memstory.results.outcomes import StepTime, TrialResult
from memstory.results.recording import QuestionRecord

QUESTION: Final = "search (retrieval)"
_MIDDLE, _SLOW = 0.5, 0.95
_MILLI: Final = 1000
_NO_EMBEDDER: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle and the slow end of some times, in milliseconds."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The times of one operation of one column, over `count` of them in the stories that could be judged.

    `memory` and `embedding` divide `whole`, call by call, over the `told` of them of which the target can say it; None
    where it can of none. `embeds` is False if the target names no embedder at all.
    """

    column: str
    operation: str
    count: int
    told: int
    whole: Spread
    memory: Spread | None
    embedding: Spread | None
    embeds: bool


class _Timed(NamedTuple):
    operation: str
    seconds: float
    embedding: float | None


def timed_steps() -> list[str]:
    """Return the steps whose time is the memory's own; the others mostly wait."""
    return [word.name for word in WORDS.values() if word.is_timed]


def latencies(columns: Sequence[Column]) -> list[Latency]:
    """Return the times of every operation of every column."""
    found = []
    for column in columns:
        timed = list(_timed(column))
        for operation in (*timed_steps(), QUESTION):
            calls = [one for one in timed if one.operation == operation]
            if calls:
                found.append(_latency(column, operation, calls))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed.

    >>> percentile([4, 1, 2, 3], 0.5), percentile([4, 1, 2, 3], 0.95)
    (2, 4)
    """
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


def _latency(column: Column, operation: str, timed: Sequence[_Timed]) -> Latency:
    told = [one for one in timed if one.embedding is not None]
    return Latency(
        column=column.title,
        operation=operation,
        count=len(timed),
        told=len(told),
        whole=spread([one.seconds for one in timed]),
        memory=spread([max(0.0, one.seconds - (one.embedding or 0.0)) for one in told]) if told else None,
        embedding=spread([one.embedding or 0.0 for one in told]) if told else None,
        embeds="embedder" in column.about,
    )


def spread(seconds: Sequence[float]) -> Spread:
    """Return the middle and the slow end of times in seconds."""
    return Spread(p50_ms=_MILLI * percentile(seconds, _MIDDLE), p95_ms=_MILLI * percentile(seconds, _SLOW))


def _timed(column: Column) -> Iterator[_Timed]:
    for case in column.cases.values():
        for trial in case.trials if case.outcome in ("passed", "failed", "measured") else ():
            # Where nothing embeds, there is nothing to tell.
            untold = None if trial.recording.about.get("embedder", _NO_EMBEDDER) != _NO_EMBEDDER else 0.0
            for operation, timed in _calls(trial):
                if not timed.seconds:
                    continue  # a baseline keeps no times
                told = timed.embedding_seconds
                yield _Timed(operation, timed.seconds, untold if told is None else told)


def _calls(trial: TrialResult) -> Iterator[tuple[str, StepTime | QuestionRecord]]:
    yield from ((step.op, step) for step in trial.times)
    yield from ((QUESTION, asked) for record in trial.recording.retrieval for asked in record.questions)
