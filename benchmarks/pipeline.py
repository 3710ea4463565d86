"""How fast the pipeline takes in, recalls and compresses: `python benchmarks/pipeline.py`.

Prints, and exits with 1 where it is not as wanted: the ingestion of 1,000 mixed texts against the embedder's own
throughput on the same texts; the median of a recall without its embedding, at 10,000 memories of one user, alone,
beside other users and beside an archive; the compression of 1,000 sessions with its progress and its memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from numpy.typing import NDArray

from memstory.contract.cache_folder import cache_folder
from memstory_reference.adapters.embedding import minilm, weights
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.systems.pipeline.chunk import Utterance
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.settings import PipelineSettings

WANTED_SHARE = 0.85
WANTED_MILLISECONDS = 10.0
WANTED_SPREAD = 1.5
WANTED_MEGABYTES = 64.0
DIMENSION = 384
WORDS = "memory user project deadline coffee language database meeting budget clock office update search story Graz"


class Ticking:
    """A clock that goes on by a minute each time."""

    def __init__(self) -> None:
        self._minutes = count()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(self._minutes))

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


class RandomEmbedder:
    """Costs nothing, so that what is left is the pipeline's own."""

    model = "random"
    dimension: int | None = DIMENSION

    def __init__(self) -> None:
        self._rng = np.random.default_rng(1)
        self._centres = self._rng.standard_normal((100, DIMENSION))

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        # In a hundred clouds, as texts are: no index finds its way among vectors that point everywhere.
        centres = self._centres[self._rng.integers(0, len(self._centres), len(texts))]
        rows = centres + 0.7 * self._rng.standard_normal((len(texts), DIMENSION))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


async def opened(folder: Path, embedder: Embedder, **settings: object) -> PipelineMemory:
    """Return an open pipeline that stores every text."""
    numbers = count()
    given = {"path": str(folder), "store_threshold": 0, "auto_compress": False, **settings}
    ports = MemoryPorts(embedder=embedder, clock=Ticking(), new_id=lambda: f"id-{next(numbers):09}")
    return await open_pipeline(PipelineSettings().merge(given, "benchmark"), ports)


def mixed_texts(number: int) -> list[str]:
    """Return texts of 5 to 120 words, each its own."""
    rng = np.random.default_rng(number)
    sizes = rng.integers(5, 121, size=number)
    return [f"Note {place} says: {' '.join(rng.choice(WORDS.split(), size=size))}." for place, size in enumerate(sizes)]


async def ingestion(folder: Path, repeats: int) -> bool:
    """Print the share of the embedder's own throughput; return whether it is as wanted."""
    embedder = minilm.MiniLmEmbedder(weights.find_weights(cache_folder(os.environ)))
    texts = mixed_texts(1_000)
    await embedder.embed(texts[:50], Purpose.DOCUMENT)
    alone, together = [], []
    for number in range(repeats):
        begun = time.process_time()
        await embedder.embed(texts, Purpose.DOCUMENT)
        alone.append(time.process_time() - begun)
        service = await opened(folder / f"{number}", embedder)
        begun = time.process_time()
        await service.ingest_all([Utterance(text=text, session_id="s") for text in texts], "ann")
        await service.settle()
        together.append(time.process_time() - begun)
        await service.close()
    share = min(alone) / min(together)
    rates = f"{len(texts) / min(together):.0f} against {len(texts) / min(alone):.0f} texts/CPU s"
    print(f"ingestion, vector index included: {rates}, {share:.0%} (wanted {WANTED_SHARE:.0%})")
    return share >= WANTED_SHARE


async def recalls(service: PipelineMemory, user: str, times: int, **given: object) -> list[float]:
    """Return the milliseconds of each recall."""
    await service.recall("warm", user, **given)  # type: ignore[arg-type]  (checked by the service)
    taken = []
    for number in range(times):
        begun = time.perf_counter()
        await service.recall(f"question {number}", user, **given)  # type: ignore[arg-type]
        taken.append(1_000 * (time.perf_counter() - begun))
    return taken


async def fill(service: PipelineMemory, user: str, number: int, **fields: object) -> None:
    """Write memories of one user, a thousand at once."""
    for start in range(0, number, 1_000):
        rows = [
            {"text": f"{user} {place} {WORDS.split()[place % 15]}", **fields} for place in range(start, start + 1_000)
        ]
        await service.import_memories(rows, user)
    await service.settle()


async def recall(folder: Path, times: int) -> bool:
    """Print the medians; return whether they are as wanted."""
    service = await opened(folder, RandomEmbedder())
    await fill(service, "ann", 10_000)
    alone = await recalls(service, "ann", times)
    shown(f"recall at 10,000 memories (wanted {WANTED_MILLISECONDS:g})", alone)
    for other in range(10):
        await fill(service, f"other {other}", 3_000)
    beside = await recalls(service, "ann", times)
    shown("the same beside 30,000 memories of ten others", beside)
    spread = median(beside) / median(alone)
    print(f"  {spread:.2f} times as long (wanted at most {WANTED_SPREAD:g})")
    shown(
        "where half of the types is wanted", await recalls(service, "ann", times, memory_types=["semantic", "working"])
    )
    told = {"text": "told", "kind": "semantic", "source_session_id": "old", "compression_source": True}
    await service.import_memories([told], "bob")
    await fill(service, "bob", 10_000, compressed=True, session="old")
    await fill(service, "bob", 10_000, session="new")
    shown("10,000 memories beside an archive of as many", await recalls(service, "bob", times))
    shown("the archive too, row by row", await recalls(service, "bob", times, include_compressed=True))
    await service.close()
    return median(alone) <= WANTED_MILLISECONDS and median(beside) <= WANTED_MILLISECONDS and spread <= WANTED_SPREAD


def shown(what: str, taken: Sequence[float]) -> None:
    """Print median and 95th percentile."""
    print(f"{what}: p50 {median(taken):.1f} ms, p95 {quantiles(taken, n=20)[-1]:.1f} ms")


async def compression(folder: Path, sessions: int) -> bool:
    """Print what the compression takes; return whether its memory stays within bounds."""
    service = await opened(folder, RandomEmbedder())
    for session in range(sessions):
        texts = mixed_texts(20)
        await service.import_memories(
            [
                {"text": f"{session} {text}", "session": f"s{session:05}", "created_at": moment(session)}
                for text in texts
            ],
            "ann",
        )
    await service.settle()
    tracemalloc.start()
    begun = time.perf_counter()
    report = await service.compress("ann", until_quiet=True)
    seconds = time.perf_counter() - begun
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    await service.close()
    print(
        f"compression of {len(report.compressed)} of {sessions} sessions of 20 memories: {seconds:.1f} s, peak "
        f"{peak:.1f} MB (wanted {WANTED_MEGABYTES:g})"
    )
    return peak <= WANTED_MEGABYTES and bool(report.compressed)


def moment(session: int) -> str:
    """Return when a session was."""
    return (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=session)).isoformat()


def main() -> int:
    """Run all three; the exit code is 1 if a figure is not as wanted."""
    parser = argparse.ArgumentParser(description="Speed of the pipeline: ingestion, recall, compression.")
    parser.add_argument("--repeats", type=int, default=2, help="runs of the ingestion, of which the best counts")
    parser.add_argument("--times", type=int, default=200, help="recalls of each sort (default: %(default)s)")
    parser.add_argument("--sessions", type=int, default=1_000, help="sessions to compress (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        place = Path(folder)
        enough = [
            runner.run(recall(place / "recall", options.times)),
            runner.run(compression(place / "compression", options.sessions)),
            runner.run(ingestion(place / "ingestion", options.repeats)),
        ]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main())
