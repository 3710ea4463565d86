"""Which part of the cases this machine does: `--shard 2/5`, or `auto` for what the job's own variables say."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapreplace
from typing import Final, NamedTuple

AUTO: Final = "auto"
COUNT: Final = "MEMSTORY_SHARDS"
"""The variable that says how many shards there are, where a scheduler tells a job its number alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int


_LEAST_SECONDS: Final = 0.001
"""What every case counts for at least: those that took no time would all fall to one shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTimes:
    """How long cases took in the run at `name`, by their ids; others count for `usual`, the median of those.

    `digest` is equal in all shards that were given the same times.
    """

    name: str
    seconds: Mapping[str, float]
    usual: float
    digest: str = ""


class Deal:
    """Deals cases out to the shards of a run, in every shard alike; each goes to the shard that has least so far.

    Attributes:
        tables: What is to be the same in all shards of the tables of rows whose cases are dealt before they are made.
        of: How many cases these have.
        own: How many of these are the shard's own, and were made.
        timed: How many of all cases had a time.
    """

    def __init__(self, shard: Shard, times: CaseTimes | None = None) -> None:
        self.shard, self.times = shard, times
        self.tables: list[tuple[str, ...]] = []
        self.of = self.own = self.timed = 0
        # A heap; without times the loads are counts, and the shards have their turns.
        self._loads: list[tuple[float, int]] = [(0.0, number) for number in range(1, shard.count + 1)]

    def own_places(self, count: int, cases: Iterable[str]) -> list[int]:
        """Return the places of the shard's own among so many cases, the longest being dealt first.

        `cases` are their ids, which are looked at only where there are times.
        """
        weights = [1.0] * count if self.times is None else self._seconds(cases, self.times)
        own: list[int] = []
        for place in sorted(range(count), key=weights.__getitem__, reverse=True):
            load, number = self._loads[0]
            heapreplace(self._loads, (load + weights[place], number))
            if number == self.shard.number:
                own.append(place)
        return own

    def own_places_in_table(self, table: tuple[str, ...], count: int, cases: Iterable[str]) -> list[int]:
        """Return the same of a table of rows; `table` says what it is."""
        self.tables.append(table)
        self.of += count
        return self.own_places(count, cases)

    def _seconds(self, cases: Iterable[str], times: CaseTimes) -> list[float]:
        found = [times.seconds.get(case) for case in cases]
        self.timed += sum(one is not None for one in found)
        return [times.usual if one is None else max(one, _LEAST_SECONDS) for one in found]


class _Scheduler(NamedTuple):
    """The variables in which a job finds its number, the number of the first job, how many there are, and the step."""

    name: str
    number: str
    total: str
    first: str = "0"
    step: str = ""


# `first` is a number, or the variable that has it.
_SCHEDULERS: Final = (
    _Scheduler("GitLab", "CI_NODE_INDEX", "CI_NODE_TOTAL", "1"),
    _Scheduler("GitHub", "MEMSTORY_JOB_INDEX", "MEMSTORY_JOB_TOTAL"),
    _Scheduler("CircleCI", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL"),
    _Scheduler("Buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT"),
    _Scheduler(
        "Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"
    ),
    _Scheduler("AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
    _Scheduler("Kubernetes", "JOB_COMPLETION_INDEX", COUNT),
)


def parse_shard(text: str) -> Shard:
    """Return the shard that `2/5` names, or that the variables of the job name for `auto`.

    >>> parse_shard("2/5")
    Shard(number=2, count=5)
    """
    if text == AUTO:
        return shard_of_job(os.environ)
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        message = f"'{text}' is not a shard: say which of how many, from 1/1 on, such as 2/5, or {AUTO}"
        raise ArgumentTypeError(message)
    return Shard(number=int(found[1]), count=int(found[2]))


def shard_of_job(environ: Mapping[str, str]) -> Shard:
    """Return the shard of this job of a matrix or an array; ArgumentTypeError where its variables do not say which.

    >>> shard_of_job({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"})
    Shard(number=2, count=5)
    """
    one = next((one for one in _SCHEDULERS if environ.get(one.number)), None)
    if one is None:
        known = ", ".join(f"{one.number} ({one.name})" for one in _SCHEDULERS)
        raise ArgumentTypeError(f"'{AUTO}': this is no job of a matrix or an array: none of {known} is set. Say 2/5")
    count = environ.get(one.total) or environ.get(COUNT)
    if not count:
        raise ArgumentTypeError(f"'{AUTO}': {one.number} is set, and {one.total} is not: say in {COUNT} how many jobs")
    try:
        first, step = int(environ.get(one.first, one.first)), int(environ.get(one.step) or 1)
        number, rest = divmod(int(environ[one.number]) - first, step)
        shard = Shard(number=number + 1, count=int(count))
    except (ValueError, ZeroDivisionError):
        shard, rest = Shard(number=0, count=0), 0
    if rest or not 1 <= shard.number <= shard.count:
        raise ArgumentTypeError(f"'{AUTO}': {one.number}={environ[one.number]} of {one.total}={count} is no shard of "
                                f"{one.name}")  # fmt: skip
    return shard
