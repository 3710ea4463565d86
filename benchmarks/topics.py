"""The topics system with 1,000, 10,000 and 50,000 memories of 100 owners: exact recall, search, batched writing.

Vectors are drawn at random, so that no figure holds any embedding. The goals: the median at 50,000 memories is at most
twice that at 1,000; one batch is 5 x one by one. Run it with `python benchmarks/topics.py`; it takes
about two minutes.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np

from memstory.contract.target import Item, Scope
from memstory_reference.adapters.machine import SystemClock
from memstory_reference.adapters.vectors.exact_store import open_exact_folder
from memstory_reference.ports import Purpose, Vectors, VectorStore
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings

OWNERS, TOPICS_EACH, DIMENSION, K = 100, 5, 384, 5
SIZES = (1_000, 10_000, 50_000)
SAMPLES, WRITES = 500, 200
GOAL_GROWTH, GOAL_BATCH = 2.0, 5.0


class Drawn:
    """Random unit vectors at no cost: they were drawn before the clock starts."""

    model = "drawn"
    dimension: int | None = DIMENSION

    def __init__(self) -> None:
        rows = np.random.default_rng(7).standard_normal((4_096, DIMENSION)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._next = 0

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        at = np.arange(self._next, self._next + len(texts)) % len(self._rows)
        self._next += len(texts)
        return np.asarray(self._rows[at], np.float32)


def service_over(store: VectorStore, ids: Callable[[], str]) -> MemoryService:
    """Return a memory; every engram is near enough, as in a search that has to rank them all."""
    settings = TopicsSettings.default().merge({"top_k": K, "min_score": -1.0}, "benchmark")
    return MemoryService(settings=settings, vectors=store, embedder=Drawn(), clock=SystemClock(), new_id=ids)


def new_ids() -> Callable[[], str]:
    """Return a source of ids."""
    numbers = count()
    return lambda: f"e{next(numbers):07d}"


def owner(number: int) -> str:
    """Return the name of an owner."""
    return f"owner {number}"


def engram(number: int) -> str:
    """Return a text of a memory's usual size."""
    return f"Q: What did I say about subject {number}? A: You said that the value of subject {number} is {number * 7}."


async def fill(folder: Path, each: int) -> None:
    """Write `each` memories for every owner, a few of them topics."""
    store = open_exact_folder(folder, model=Drawn.model)
    service = service_over(store, new_ids())
    for number in range(OWNERS):
        facts = [Item(text=f"value {at} of {number}", key=f"user.fact_{at}") for at in range(TOPICS_EACH)]
        engrams = [Item(text=engram(at), metadata={"session_id": "s"}) for at in range(each - TOPICS_EACH)]
        await service.add([*facts, *engrams], Scope(user=owner(number)))
    await store.close()


async def p50_ms(work: Callable[[], Awaitable[None]]) -> float:
    """Return the median of SAMPLES calls."""
    times = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return 1_000 * statistics.median(times)


async def measured(folder: Path, each: int) -> dict[str, float]:
    """Return what a call costs in a store that was opened again, in ms."""
    await fill(folder, each)
    store = open_exact_folder(folder, model=Drawn.model)
    service = service_over(store, new_ids())
    chance = random.Random(3)  # noqa: S311  (which owners are asked for)
    for number in range(OWNERS):
        await service.search_episodic(owner(number), "warm")

    async def recall() -> None:
        number, at = chance.randrange(OWNERS), chance.randrange(TOPICS_EACH)
        if await service.recall_topic(owner(number), f"user.fact_{at}") != f"value {at} of {number}":
            raise AssertionError(number)

    async def search() -> None:
        if len(await service.search_episodic(owner(chance.randrange(OWNERS)), "anything")) != min(K, each):
            raise AssertionError(each)

    figures = {"topic recall": await p50_ms(recall), "episodic search": await p50_ms(search)}
    await store.close()
    return figures


async def write_rates(folder: Path) -> tuple[float, float]:
    """Return the engrams a second in one batch, and one by one."""
    store = open_exact_folder(folder, model=Drawn.model)
    service = service_over(store, new_ids())
    await service.write_episodic("writer", "first")
    began = time.perf_counter()
    await service.add([Item(text=engram(at)) for at in range(WRITES)], Scope(user="writer"))
    middle = time.perf_counter()
    for at in range(WRITES):
        await service.write_episodic("writer", engram(at))
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
        met = ratio <= GOAL_GROWTH
        print(
            f"{what:15s} p50 ms at {', '.join(f'{size:,}' for size in SIZES)} memories: "
            f"{', '.join(f'{cost:.2f}' for cost in costs)}; ratio {ratio:.2f} "
            f"(goal {GOAL_GROWTH:g}: {verdict(met=met)})"
        )
    with tempfile.TemporaryDirectory() as folder:
        batched, single = await write_rates(Path(folder))
    print(
        f"writing: {batched:,.0f} engrams/s in one batch, {single:,.0f} one by one; {batched / single:.1f} x "
        f"(goal {GOAL_BATCH:.0f} x: {verdict(met=batched >= GOAL_BATCH * single)})"
    )


if __name__ == "__main__":
    asyncio.run(main())
