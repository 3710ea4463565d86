"""Observations at 10,000 runs of one owner: the latency of `get_context` and the pace of batched storing.

Run it with `python benchmarks/observations.py`. Vectors come from a table, so that no figure holds any embedding. The
goals: `get_context` p50 at most 25 ms, storing at least 100 observations a second.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import numpy as np

from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.observations import open_observations
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.settings import ObservationsSettings

RUNS, BATCH, QUERIES, DIMENSION = 10_000, 500, 200, 384
SUBJECTS = ("token", "cache", "memory", "agent", "retrieval", "prompt", "vector", "budget", "latency", "planner")


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


class Drawn:
    """Random unit vectors: what is measured is everything but the embedding."""

    model = "drawn"
    dimension: int | None = DIMENSION

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = self._random.standard_normal((len(texts), DIMENSION)).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _observation(number: int) -> Observation:
    subject, other = SUBJECTS[number % 10], SUBJECTS[number // 10 % 10]
    return Observation(
        id=f"run-{number}",
        title=f"{subject} and {other} {number}",
        narrative=f"Covered {subject} control with {other} limits, variant v{number}.",
        facts=tuple(f"{subject} fact {place} of run {number} about {other}" for place in range(6)),
        task=f"Explain {subject} under {other}, case {number}",
        final_score=number % 100 / 10,
        timestamp=Noon().now() + timedelta(seconds=number),
    )


async def _measure(folder: Path) -> None:
    ports = MemoryPorts(embedder=Drawn(), clock=Noon(), new_id=str)
    service = await open_observations(ObservationsSettings(path=str(folder), min_sim=-1), ports)
    begun = perf_counter()
    for start in range(0, RUNS, BATCH):
        await service.store([_observation(number) for number in range(start, start + BATCH)], "ann")
    pace = RUNS / (perf_counter() - begun)
    milliseconds = []
    for number in range(QUERIES):
        begun = perf_counter()
        context = await service.get_context(f"Explain {SUBJECTS[number % 10]} limits of v{number}", "ann")
        milliseconds.append((perf_counter() - begun) * 1000)
        if not context:
            raise SystemExit("a context came back empty: the figure would mean nothing")
    await service.close()
    cuts = quantiles(milliseconds, n=20)
    print(f"store, {RUNS} observations in batches of {BATCH}: {pace:.0f}/s (goal: 100/s or more)")
    print(f"get_context at {RUNS}: p50 {cuts[9]:.1f} ms, p95 {cuts[18]:.1f} ms (goal: p50 25 ms or less)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(_measure(Path(temporary)))
