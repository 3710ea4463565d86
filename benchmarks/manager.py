"""How fast the manager memory is as it grows: `python benchmarks/manager.py`.

Prints the median time of a search and of a context look-up, vectors being drawn and not embedded: for an owner with
1,000 memories alone in the store, for the same owner when the store holds 50,000 of others too, and for an owner who
has 50,000 alone; then their ratios to the first, and the rate of storing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np

from memstory.contract.target import Item, Scope
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories import MemoryType
from memstory_reference.systems.manager.settings import ManagerSettings

FEW, MANY = 1_000, 50_000
WANTED_RATIO = 3.0
"""A search among 50,000 memories against one among 1,000; a context look-up should not change at all."""

DIMENSION, CENTRES, BATCH, LOOKS = 384, 200, 1_000, 200
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return NOON

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError(moment)


class ClusteredEmbedder:
    """Vectors near one of a few centres, as those of real texts are; told by the number at the end of a text."""

    model = "clustered"
    dimension: int | None = DIMENSION

    def __init__(self) -> None:
        self._centres = np.random.default_rng(0).standard_normal((CENTRES, DIMENSION)).astype(np.float32)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        numbers = [int(text.rpartition(" ")[2]) for text in texts]
        noise = [np.random.default_rng(number).standard_normal(DIMENSION) for number in numbers]
        rows = self._centres[[number % CENTRES for number in numbers]] + 0.5 * np.array(noise)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


async def fill(manager: MemoryManager, owner: str, size: int) -> float:
    """Store `size` memories of one owner in batches; return how many a second."""
    kinds = (MemoryType.FACT, MemoryType.CONVERSATION)
    begun = time.perf_counter()
    for start in range(0, size, BATCH):
        items = [Item(text=f"text {n}", kind=kinds[n // CENTRES % 2]) for n in range(start, start + BATCH)]
        await manager.add(items, Scope(user=owner))
    rate = size / (time.perf_counter() - begun)
    await manager.set_context(owner, "s1", "task", "text 7")
    print(f"stored {size:,} memories of {owner}, {rate:,.0f} a second", file=sys.stderr)
    return rate


async def milliseconds(work: Callable[[int], Awaitable[object]]) -> float:
    """Return the median time of `work`."""
    taken = []
    for number in range(LOOKS):
        begun = time.perf_counter()
        await work(number)
        taken.append(time.perf_counter() - begun)
    return 1000 * median(taken)


async def looked_up(manager: MemoryManager, owner: str) -> list[float]:
    """Return the median milliseconds of each kind of look-up."""
    await manager.search_memories(owner, "text 1")
    return [
        await milliseconds(lambda n: manager.search_memories(owner, f"text {10**6 + n}")),
        await milliseconds(lambda n: manager.search_memories(owner, f"text {10**6 + n}", memory_type=MemoryType.FACT)),
        await milliseconds(lambda _: manager.get_context(owner, "s1", "task")),
    ]


async def measure(folder: Path, few: int, many: int) -> None:
    """Fill a store and print what was measured."""
    embedder, numbers = ClusteredEmbedder(), count()
    store = await open_store(folder, embedder)
    manager = MemoryManager(
        settings=replace(ManagerSettings.default(), min_score=0.3),
        vectors=store,
        embedder=embedder,
        clock=Noon(),
        new_id=lambda: f"id-{next(numbers)}",
    )
    await fill(manager, "ann", few)
    alone = await looked_up(manager, "ann")
    for number in range(many // few - 1):
        await fill(manager, f"other {number}", few)
    among = await looked_up(manager, "ann")
    await fill(manager, "cid", many)
    large = await looked_up(manager, "cid")
    again = await looked_up(manager, "ann")
    await store.close()
    print("", f"{few:,} alone", f"{few:,} among {many:,}", f"{many:,} of one owner", f"{few:,} again", sep="\t")
    names = ("search", "search of one type", "context look-up")
    for name, *times in zip(names, alone, among, large, again, strict=True):
        print(f"{name:20}", *(f"{time:6.2f} ms ({time / times[0]:.2f})" for time in times), sep="\t")
    print(f"wanted: search at most {WANTED_RATIO:g} times as long, a context look-up the same")


def main() -> None:
    """Run the benchmark in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=MANY, metavar="N", help="instead of 50,000")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), FEW, arguments.many))


if __name__ == "__main__":
    main()
