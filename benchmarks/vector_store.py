"""Search, get by id and writing in the embedded vector store, with 1,000, 10,000 and 50,000 rows of 100 owners.

The goals: the median at 50,000 rows is at most twice that at 1,000; one batch is 5 x one by one.
Run it with `python benchmarks/vector_store.py`; it takes about two minutes.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

from memstory_reference.adapters.vectors.exact_store import ExactStore, open_exact_folder
from memstory_reference.ports import Record, Vectors

OWNERS, DIMENSION, K = 100, 384, 10
TEXT = "The user prefers " + "short words " * 8
SIZES = (1_000, 10_000, 50_000)
SAMPLES, WRITES = 500, 200
GOAL_GROWTH, GOAL_BATCH = 2.0, 5.0


def vectors(count: int, seed: int) -> Vectors:
    """Return random unit vectors."""
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    unit: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def rows(count: int, seed: int) -> list[Record]:
    """Return rows of a memory's usual size."""
    return [
        Record(id=f"r{seed}-{n}", text=TEXT, metadata={"kind": "episodic", "turn": n}, vector=vector)
        for n, vector in enumerate(vectors(count, seed))
    ]


async def p50_ms(work: Callable[[], Awaitable[object]]) -> float:
    """Return the median of SAMPLES calls."""
    times = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return 1_000 * statistics.median(times)


async def measured(folder: Path, each: int) -> dict[str, float]:
    """Fill the store, open it again, and return what a call costs once and ever after, in ms."""
    names = [f"owner {number}" for number in range(OWNERS)]
    store = open_exact_folder(folder, model="random")
    for seed, name in enumerate(names):
        await (await store.index("memory", name)).upsert(rows(each, seed))
    await store.close()
    store = open_exact_folder(folder, model="random")
    chance, queries = random.Random(3), vectors(SAMPLES, 9)  # noqa: S311  (which rows are asked for)
    first = []
    for name in names:
        began = time.perf_counter()
        await (await store.index("memory", name)).query(queries[0], K)
        first.append(time.perf_counter() - began)
    indexes = [await store.index("memory", name) for name in names]

    async def search() -> None:
        found = await chance.choice(indexes).query(queries[chance.randrange(SAMPLES)], K)
        if len(found) != min(K, each):
            raise AssertionError(found)

    async def filtered() -> None:
        await chance.choice(indexes).query(queries[chance.randrange(SAMPLES)], K, {"kind": "episodic"})

    async def get() -> None:
        seed = chance.randrange(OWNERS)
        if len(await indexes[seed].get([f"r{seed}-{chance.randrange(each)}"])) != 1:
            raise AssertionError(seed)

    answer = {
        "search": await p50_ms(search),
        "search where": await p50_ms(filtered),
        "get by id": await p50_ms(get),
        "first search": 1_000 * statistics.median(first),
    }
    await store.close()
    return answer


async def batch_gain(store: ExactStore) -> tuple[float, float]:
    """Return the rows a second in one batch, and one by one."""
    index = await store.index("memory", "writer")
    await index.upsert(rows(1, 7))
    began = time.perf_counter()
    await index.upsert(rows(WRITES, 1))
    middle = time.perf_counter()
    for row in rows(WRITES, 2):
        await index.upsert([row])
    ended = time.perf_counter()
    await store.close()
    return WRITES / (middle - began), WRITES / (ended - middle)


def verdict(*, met: bool) -> str:
    """Return the word at the end of a line."""
    return "met" if met else "MISSED"


async def main() -> None:
    """Print a line for each figure, with its goal."""
    figures: list[dict[str, float]] = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            figures.append(await measured(Path(folder), size // OWNERS))
    for what in figures[0]:
        costs = [figure[what] for figure in figures]
        ratio = costs[-1] / costs[0]
        line = f"{what:13s} p50 ms at {', '.join(f'{size:,}' for size in SIZES)} rows: "
        line += ", ".join(f"{cost:.2f}" for cost in costs) + f"; ratio {ratio:.2f}"
        if what != "first search":
            line += f" (goal {GOAL_GROWTH:g}: {verdict(met=ratio <= GOAL_GROWTH)})"
        print(line)
    with tempfile.TemporaryDirectory() as folder:
        batched, single = await batch_gain(open_exact_folder(Path(folder), model="random"))
    print(
        f"writing: {batched:,.0f} rows/s in one batch, {single:,.0f} one by one; {batched / single:.1f} x "
        f"(goal {GOAL_BATCH:.0f} x: {verdict(met=batched >= GOAL_BATCH * single)})"
    )


if __name__ == "__main__":
    asyncio.run(main())
