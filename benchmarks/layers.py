"""The layers on SQLite: the read of a turn at 10,000 facts of one owner among 100,000 in all, and batched writing.

Run it with `python benchmarks/layers.py`. Vectors come from a table, so that no figure holds any embedding. The goals:
a turn's read (facts, sessions and rules) p50 at most 15 ms and independent of other owners; at least 1,000 records
written a second. Another store is measured by another entry in STORES.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import numpy as np

from memstory_reference.ports import Purpose, Vectors
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.embeddings import Embeddings
from memstory_reference.systems.layers.records import Fact, MemoryRecord, Rule
from memstory_reference.systems.layers.retrieval import Retrieval
from memstory_reference.systems.layers.sqlite_store import SqliteStore
from memstory_reference.systems.layers.store import LayersStore

FACTS, OTHERS, BATCH, TURNS, DIMENSION = 10_000, 9, 1_000, 200, 384
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
THINGS = ("tea", "rowing", "chess", "violets", "trains", "bread", "maps", "rain", "cellos", "kites")
STORES: Mapping[str, Callable[[Path], LayersStore]] = {
    "sqlite": lambda folder: SqliteStore(folder / "memory.sqlite3", model="drawn")
}


class Drawn:
    """Random unit vectors."""

    model = "drawn"
    dimension: int | None = DIMENSION

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = self._random.standard_normal((len(texts), DIMENSION)).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


async def _records(owner: str, embedder: Drawn) -> list[MemoryRecord]:
    vectors = await embedder.embed([""] * FACTS, Purpose.DOCUMENT)
    return [
        MemoryRecord(
            id=f"{owner}-{number}",
            owner=owner,
            content=Fact(
                category="interest",
                subject="User",
                predicate="LIKES",
                object=f"{THINGS[number % 10]} with {THINGS[number // 10 % 10]}, kind {number}",
                evidence_quote=f"I like {THINGS[number % 10]} with {THINGS[number // 10 % 10]}, kind {number}",
            ),
            created_at=NOON + timedelta(seconds=number),
            updated_at=NOON,
            vector=vectors[number],
        )
        for number in range(FACTS)
    ]


async def _write(store: LayersStore, records: Sequence[MemoryRecord]) -> float:
    begun = perf_counter()
    for start in range(0, len(records), BATCH):
        await store.aput_batch(records[start : start + BATCH])
    return len(records) / (perf_counter() - begun)


async def _read(store: LayersStore, embedder: Drawn, owner: str) -> list[float]:
    retrieval = Retrieval(store=store, embeddings=Embeddings(embedder), config=LayersConfig(min_similarity=-1))
    milliseconds = []
    for number in range(TURNS):
        question = f"Do I like {THINGS[number % 10]} or {THINGS[number // 10 % 10]} of kind {number}?"
        begun = perf_counter()
        memory = await retrieval.load_memory_for_turn(owner, question, now=NOON, is_first_turn=False)
        milliseconds.append((perf_counter() - begun) * 1000)
        if not memory.recalled or not memory.rules:
            raise SystemExit("a turn was given nothing: the figure would mean nothing")
    return quantiles(milliseconds, n=20)


async def _measure(name: str, store: LayersStore) -> None:
    embedder = Drawn()
    rules = [
        MemoryRecord(
            id=f"rule-{number}",
            owner="ann",
            content=Rule(rule=f"Speak of {thing}.", explicit=True, evidence_quote=f"speak of {thing}"),
            created_at=NOON,
            updated_at=NOON,
        )
        for number, thing in enumerate(THINGS)
    ]
    pace = await _write(store, [*await _records("ann", embedder), *rules])
    print(f"{name}: write in batches of {BATCH}: {pace:.0f} records/s (goal: 1,000/s or more)")
    alone = await _read(store, embedder, "ann")
    print(
        f"{name}: turn read at {FACTS} facts: p50 {alone[9]:.1f} ms, p95 {alone[18]:.1f} ms (goal: p50 15 ms or less)"
    )
    for number in range(OTHERS):
        await _write(store, await _records(f"other-{number}", embedder))
    among = await _read(store, embedder, "ann")
    total = FACTS * (OTHERS + 1)
    print(f"{name}: turn read among {total}: p50 {among[9]:.1f} ms, p95 {among[18]:.1f} ms (goal: as alone)")
    await store.aclose()


if __name__ == "__main__":
    for store_name, make in STORES.items():
        with tempfile.TemporaryDirectory() as temporary:
            asyncio.run(_measure(store_name, make(Path(temporary))))
