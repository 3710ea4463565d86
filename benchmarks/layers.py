"""The layers on SQLite and Postgres: a turn's read at 10,000 facts of one owner among 100,000, and batched writing.

Run it with `python benchmarks/layers.py [sqlite] [postgres]`. Postgres is the server that MEMSTORY_POSTGRES names, or
a new one that waits for the disk as any other. Vectors come from a table, so that no figure includes embedding.
The goals on a quiet machine: a turn's read (facts, sessions and rules) p50 at most 4 ms on SQLite and 8 ms on Postgres,
independent of other owners; at least 1,000 records written a second on SQLite, 2,000 on Postgres.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import numpy as np

from memstory_reference.adapters.servers.embedded_postgres import EmbeddedPostgres
from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import drop_schemas
from memstory_reference.systems.layers.identity import OwnerSession
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.recall import Embeddings, Retrieval
from memstory_reference.systems.layers.records import Fact, MemoryRecord, Rule
from memstory_reference.systems.layers.settings import LayersSettings

FACTS, OTHERS, BATCH, TURNS, DIMENSION = 10_000, 9, 1_000, 200, 384
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
THINGS = ("tea", "rowing", "chess", "violets", "trains", "bread", "maps", "rain", "cellos", "kites")


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[LayersStore]:
    store = LayersStore(layers_database(folder / "memory.sqlite3", model="drawn"))
    yield store
    await store.aclose()


@asynccontextmanager
async def _postgres(folder: Path) -> AsyncIterator[LayersStore]:
    server = EmbeddedPostgres(folder)
    url = os.environ.get("MEMSTORY_POSTGRES") or server.start()
    place = PostgresPlace(url=url, schema=f"benchmark_{secrets.token_hex(4)}")
    try:
        store = await layers_in_postgres(place, model="drawn")
        yield store
        await store.aclose()
        await drop_schemas(place)
    finally:
        server.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A store, the records a second that it must write, and the milliseconds that a turn's read may take."""

    open: Callable[[Path], AbstractAsyncContextManager[LayersStore]]
    pace: int
    read: int


STORES: Mapping[str, Measured] = {
    "sqlite": Measured(open=_sqlite, pace=1_000, read=4),
    "postgres": Measured(open=_postgres, pace=2_000, read=8),
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
    retrieval = Retrieval(store=store, embeddings=Embeddings(embedder), config=LayersSettings(min_similarity=-1))
    milliseconds = []
    for number in range(TURNS):
        question = f"Do I like {THINGS[number % 10]} or {THINGS[number // 10 % 10]} of kind {number}?"
        begun = perf_counter()
        who = OwnerSession(owner=owner, session="-")
        _, memory = await retrieval.load_turn(who, question, now=NOON, turns=0, lists=False)
        milliseconds.append((perf_counter() - begun) * 1000)
        if memory is None or not memory.recalled or not memory.rules:
            raise SystemExit("a turn was given nothing: the figure would mean nothing")
    return quantiles(milliseconds, n=20)


async def _measure(name: str, store: LayersStore) -> None:
    embedder, goals = Drawn(), STORES[name]
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
    print(f"{name}: write in batches of {BATCH}: {pace:.0f} records/s (goal: {goals.pace}/s or more)")
    alone = await _read(store, embedder, "ann")
    print(
        f"{name}: turn read at {FACTS} facts: p50 {alone[9]:.1f} ms, p95 {alone[18]:.1f} ms "
        f"(goal: p50 {goals.read} ms or less)"
    )
    for number in range(OTHERS):
        await _write(store, await _records(f"other-{number}", embedder))
    among = await _read(store, embedder, "ann")
    total = FACTS * (OTHERS + 1)
    print(f"{name}: turn read among {total}: p50 {among[9]:.1f} ms, p95 {among[18]:.1f} ms (goal: as alone)")


async def _main(names: Sequence[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            async with STORES[name].open(Path(temporary)) as store:
                await _measure(name, store)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:] or list(STORES)))
