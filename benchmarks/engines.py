"""What the engines of `store:` cost and keep: `python benchmarks/engines.py [--kills 40] [--sizes 1000 …]`.

For each engine and size, all rows of one owner with chance vectors: rows added a second, the median search, the time to
open and answer the first search, megabytes on disk. Then processes are killed while they write, and run out of room for
their files; afterwards every acknowledged row is looked for by its id and by its vector. Postgres is the server that
MEMSTORY_POSTGRES names, else one that waits for the disk as servers do; its room is not the processes'.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import psycopg

from memstory.contract.errors import MemstoryError
from memstory_reference.adapters.servers.embedded_postgres import EmbeddedPostgres
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.ports import Purpose, Record, Vectors, VectorStore
from memstory_reference.setting_rules import ENGINES, POSTGRES
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import drop_schemas
from memstory_reference.targets.shared_postgres import VARIABLE

DIMENSION, BATCH, LOOKS = 384, 100, 50
ROOM = 3_000_000
"""Bytes that a file of a process without room may have."""


class ChanceVectors:
    """Vectors by chance, the same for the same number at the end of a text."""

    model = "chance"
    dimension: int | None = DIMENSION

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return np.array([vector_of(int(text.rpartition(" ")[2])) for text in texts])


def vector_of(number: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return a vector of length 1."""
    vector = np.random.default_rng(number).standard_normal(DIMENSION).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def rows_of(first: int, count: int = BATCH) -> list[Record]:
    """Return rows whose text, id and vector follow from their number."""
    numbers = range(first, first + count)
    return [Record(id=f"r{one}", text=f"note {one}", metadata={"n": one}, vector=vector_of(one)) for one in numbers]


async def opened(folder: Path, engine: str) -> VectorStore:
    """Open the store of a folder."""
    place = place_of(folder) if engine == POSTGRES else None
    return await open_store(folder, ChanceVectors(), engine=engine, place=place)


def place_of(folder: Path) -> PostgresPlace:
    """Return the schema that stands for a folder."""
    return PostgresPlace(url=os.environ[VARIABLE], schema=folder.name.lower())


async def end(folder: Path, engine: str) -> None:
    """Remove a store."""
    shutil.rmtree(folder)
    if engine == POSTGRES:
        await drop_schemas(place_of(folder))


async def measure(folder: Path, engine: str, size: int) -> list[str]:
    """Return the cells of one row of the table."""
    store = await opened(folder, engine)
    index = await store.index("rows", "ann")
    made = [rows_of(first) for first in range(0, size, BATCH)]
    begun = time.perf_counter()
    for rows in made:
        await index.upsert(rows)
    rate = size / (time.perf_counter() - begun)
    looks = [random.Random(0).randrange(size) for _ in range(LOOKS)]  # noqa: S311  (no secret)
    await index.query(vector_of(0), 5)
    took = [await seconds(index.query, vector_of(one), 5) for one in looks]
    await store.close()
    begun = time.perf_counter()
    store = await opened(folder, engine)
    await (await store.index("rows", "ann")).query(vector_of(0), 5)
    opening = time.perf_counter() - begun
    await store.close()
    return [f"{rate:,.0f}", f"{median(took) * 1e3:.1f} ms", f"{opening:.2f} s"]


def megabytes(folder: Path, engine: str) -> str:
    """Return what is on disk."""
    if engine == POSTGRES:
        sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = %s::regnamespace"
        with psycopg.connect(os.environ[VARIABLE]) as connection:
            found = connection.execute(f"{sizes} AND relkind = 'r'", (place_of(folder).schema,)).fetchone()
        return f"{float(found[0] if found else 0) / 1e6:.0f} MB"
    return f"{sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 1e6:.0f} MB"


async def seconds(call: Callable[..., Awaitable[object]], *args: object) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    await call(*args)
    return time.perf_counter() - begun


def write_until_end(folder: Path, engine: str, told: Path, room: int | None) -> None:
    """Write batches in a process of its own, and note each that is acknowledged; end at the first error."""
    if room is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    async def write() -> None:
        store = await opened(folder, engine)
        index = await store.index("rows", "ann")
        for batch in range(10_000):
            await index.upsert(rows_of(batch * BATCH))
            await index.query(vector_of(batch * BATCH), 1)
            told.write_text(str(batch + 1))  # noqa: ASYNC240  (nothing else runs)

    try:
        asyncio.run(write())
    except (MemstoryError, OSError) as error:
        sys.stderr.write(f"    {engine}: {str(error)[:110]}\n")


async def count_lost(folder: Path, engine: str, batches: int) -> str:
    """Return what is wrong with the acknowledged rows, or nothing."""
    try:
        store = await opened(folder, engine)
        index = await store.index("rows", "ann")
        found = {row.id for row in await index.list()}
        missing = [one for batch in range(batches) for one in rows_of(batch * BATCH) if one.id not in found]
        near = [await index.query(vector_of(batch * BATCH), 1) for batch in range(batches)]
        await store.close()
    except MemstoryError as error:
        return f"cannot be read: {str(error)[:90]}"
    unfound = sum(not one or one[0].record.id != f"r{batch * BATCH}" for batch, one in enumerate(near))
    problems = [f"{len(missing)} rows missing"] if missing else []
    return ", ".join(problems + ([f"{unfound} of {batches} not found by their vector"] if unfound else []))


def end_one(folder: Path, engine: str, after: float, *, room: int | None = None) -> tuple[int, str]:
    """Have a process write, and kill it some seconds after its first batch; return batches and what is lost."""
    told = folder.with_suffix(".told")
    # Started anew: Chroma's threads do not survive a fork.
    child = get_context("spawn").Process(target=write_until_end, args=(folder, engine, told, room))
    child.start()
    while not told.exists() and child.is_alive():
        time.sleep(0.02)
    child.join(after)
    child.kill()
    child.join()
    batches = int(told.read_text() or 0) if told.exists() else 0
    told.unlink(missing_ok=True)
    return batches, asyncio.run(count_lost(folder, engine, batches))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40, help="processes that are killed, of each engine")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 50_000], help="rows of one owner")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES, help="all of them by default")
    parsed = parser.parse_args()
    if POSTGRES in parsed.engines and VARIABLE not in os.environ:
        os.environ[VARIABLE] = EmbeddedPostgres(Path(tempfile.mkdtemp())).start()
    print(
        "| store | rows | added a second | search, median | open and first search | disk |\n|---|---|---|---|---|---|"
    )
    for size in parsed.sizes:
        for engine in parsed.engines:
            folder = Path(tempfile.mkdtemp())
            cells = [*asyncio.run(measure(folder, engine, size)), megabytes(folder, engine)]
            print(f"| {engine} | {size:,} | {' | '.join(cells)} |", flush=True)
            asyncio.run(end(folder, engine))
    chance = random.Random(1)  # noqa: S311  (no secret)
    for engine in parsed.engines:
        ends = []
        for _ in range(parsed.kills):
            folder = Path(tempfile.mkdtemp())
            ends.append(end_one(folder, engine, chance.uniform(0.2, 3.0)))
            asyncio.run(end(folder, engine))
        bad = [problem for _, problem in ends if problem]
        written = sum(batches for batches, _ in ends) * BATCH
        print(
            f"\n{engine}: {parsed.kills} kills, {written:,} rows acknowledged, {len(bad)} kills with a loss", flush=True
        )
        for problem in bad:
            print(f"  {problem}")
        if engine == POSTGRES:
            continue
        folder = Path(tempfile.mkdtemp())
        batches, problem = end_one(folder, engine, 60, room=ROOM)
        print(f"{engine}: no room after {batches * BATCH:,} rows; then {problem or 'all of them are there'}")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
