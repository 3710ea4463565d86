"""Turns at 1,000 and at 100,000 of one owner: search, opening and memory beside the vectors; CPU time, no embedding.

Run it with `python benchmarks/turns.py`, or `python benchmarks/turns.py 1000 20000` for other sizes. Texts and vectors
are drawn, so that no figure holds any embedding. The goals on a quiet machine: search p50 at most 2.5 ms at 1,000 turns
and 25 ms at 100,000, and 100,000 turns open in a second.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time

import numpy as np

from memstory_reference.composition.turns import open_sqlite_turns
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.systems.turns.service import TurnsMemory
from memstory_reference.systems.turns.turn import NewTurn

SIZES, BATCH, QUERIES, DIMENSION, WORDS = (1_000, 100_000), 1_000, 100, 384, 3_000


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


class Drawn:
    """Random unit vectors."""

    model, dimension = "drawn", DIMENSION

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = self._random.standard_normal((len(texts), DIMENSION)).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _words(random: np.random.Generator, number: int) -> str:
    """Return words whose frequencies fall as those of a language do."""
    return " ".join(f"w{int(rank)}" for rank in np.minimum(random.zipf(1.3, number), WORDS))


def _turn(random: np.random.Generator, number: int) -> NewTurn:
    said_at = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=30 * number)
    speaker = ("Ann", "Ben", "Cid")[number % 3]
    return NewTurn(text=_words(random, 15), speaker=speaker, session=f"s{number // 20}", said_at=said_at.isoformat())


async def _measure(size: int, folder: Path) -> None:
    embedder, random, numbers = Drawn(), np.random.default_rng(1), count()

    def opened() -> TurnsMemory:
        store = open_sqlite_turns(folder, embedder.model)
        return TurnsMemory(store=store, embedder=embedder, clock=Noon(), new_id=lambda: f"id{next(numbers)}")

    memory, begun = opened(), process_time()
    for start in range(0, size, BATCH):
        await memory.add("ann", [_turn(random, start + place) for place in range(min(BATCH, size - start))])
    adding = process_time() - begun
    await memory.close()
    memory, begun = opened(), perf_counter()
    await memory.status("ann")
    opening = perf_counter() - begun
    took = []
    for _ in range(QUERIES):
        question, start = f"What did Ann say of {_words(random, 4)} in May 2021?", process_time()
        await memory.search("ann", question, min_score=-1)
        took.append((process_time() - start) * 1000)
    await memory.close()
    cuts = quantiles(took, n=20)
    print(
        f"{size:>8} turns: search p50 {cuts[9]:6.1f} ms, p95 {cuts[18]:6.1f} ms of CPU; opened in {opening:.2f} s; "
        f"added at {size / adding:,.0f} turns a second of CPU",
        flush=True,
    )


async def main(sizes: Sequence[int]) -> None:
    """Print a line for each size."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            await _measure(size, Path(folder))


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or SIZES))
