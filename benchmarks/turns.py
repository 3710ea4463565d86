"""Turns at 1,000, at 100,000 of one owner, and of 1,000 owners: search, opening, memory; and others side by side.

Run it with `python benchmarks/turns.py`, or `python benchmarks/turns.py 1000 20000 100x1000` for other sizes. Texts
are those of lifelines, again and again; the vector of each is that of its text with noise, as of a text that is alike.
Questions are embedded before they are timed. Times are of CPU, except for opening. A million turns take 4 GB of disk.

The goals on a quiet machine: search p50 at most 2.5 ms at 1,000 turns, and 25 ms (p95 40 ms) at 100,000; as fast
among a million of 1,000 owners; 100,000 turns open in a second; adding 90% bound by the embedder; memory at most 1.3
times the vectors: of a process that opens the store and searches each owner, without what it had before on a store of
a few turns, and without freed memory that the allocator keeps (with it, in brackets).
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from statistics import quantiles
from time import perf_counter, process_time, time_ns
from typing import Any

import chromadb
import numpy as np
import sqlite_vec
from langgraph.store.sqlite import SqliteStore

from memstory.bundled import bundled_stories
from memstory.targets.vendors.sqlite import loading_driver
from memstory_reference.composition.embedders import MINILM, make_embedder
from memstory_reference.composition.turns import turns_in_folder
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.turn import NewTurn

BATCH, QUERIES, NOISE, K, BESIDE = 1_000, 200, 0.5, 10, 1_000
SIZES = ("1000", "100000", "1000x1000")
OPENED = "opened"
"""The word with which this file is run in a new process, on the folder of a store."""


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


class Perturbed:
    """Texts are embedded once; each time one comes again, its vector has other noise."""

    model, dimension = "perturbed", 384

    def __init__(self) -> None:
        self._embedder = make_embedder(MINILM, ollama_host="")
        self._known: dict[str, Vectors] = {}
        self._random = np.random.default_rng(7)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known |= dict(zip(missing, await self._embedder.embed(missing, purpose), strict=True))
        rows = np.stack([self._known[text] for text in texts])
        if purpose is Purpose.DOCUMENT:
            rows = rows + NOISE * self._random.standard_normal(rows.shape) / np.sqrt(rows.shape[1])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    async def close(self) -> None:
        await self._embedder.close()


class Drawn:
    """Vectors by chance: for memory, which of them are near is all the same."""

    model, dimension = Perturbed.model, Perturbed.dimension

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = np.random.default_rng(len(texts)).standard_normal((len(texts), self.dimension))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    async def close(self) -> None:
        """Nothing is open."""


class Corpus:
    """Turns and questions of circle one of lifelines."""

    def __init__(self) -> None:
        folder = bundled_stories() / "corpora" / "lifelines"
        rows = [json.loads(line) for line in (folder / "turns.jsonl").read_text("utf-8").splitlines()]
        asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
        self.rows = [row for row in rows if row["metadata"]["circle"] == 1]
        self.questions = [row["text"] for row in asked if row["metadata"]["circle"] == 1][:QUERIES]

    def turn(self, number: int) -> NewTurn:
        """Return the turn of a number; behind the last one they begin again, in new sessions."""
        again, place = divmod(number, len(self.rows))
        of, text = self.rows[place]["metadata"], self.rows[place]["text"].split(": ", 1)[1]
        return NewTurn(text=text, speaker=of["speaker"], session=f"{of['session']}.{again}", said_at=of["said_at"])

    def turns(self, size: int) -> list[NewTurn]:
        """Return the first turns."""
        return [self.turn(number) for number in range(size)]


async def measure(corpus: Corpus, embedder: Perturbed, owners: int, size: int, folder: Path) -> float:
    """Print a line for so many owners with so many turns each; return the median of a search in ms."""
    numbers, chance = count(), Random(3)  # noqa: S311  (whom to ask, not a secret)
    names = [f"owner {number}" for number in range(owners)]

    def opened() -> TurnsService:
        store = turns_in_folder(folder, embedder.model)
        return TurnsService(store=store, embedder=embedder, clock=Noon(), new_id=lambda: f"id{next(numbers)}")

    memory, turns, begun = opened(), corpus.turns(size), process_time()
    for name in names:
        for start in range(0, size, BATCH):
            await memory.add(name, turns[start : start + BATCH])
    adding = (process_time() - begun) / (owners * size)
    for question in corpus.questions:  # now they are embedded, and the embedder has all the memory that it takes
        await memory.search(names[0], question, K)
    await memory.close()
    memory, begun = opened(), perf_counter()
    await memory.search(names[0], corpus.questions[0], K)
    opening = perf_counter() - begun
    for name in names:  # what a search needs is in memory after the first one
        await memory.search(name, corpus.questions[0], K)
    took = []
    for question in corpus.questions:
        name, begun = chance.choice(names), process_time()
        await memory.search(name, question, K)
        took.append((process_time() - begun) * 1000)
    await memory.close()
    cuts, vectors = quantiles(took, n=20), owners * size * embedder.dimension * 4
    kept, held = (taken / vectors for taken in _taken_by_a_new_process(folder))
    print(
        f"{owners:>5} x {size:>7} turns: search p50 {cuts[9]:5.1f} ms, p95 {cuts[18]:5.1f} ms of CPU; the first owner "
        f"opened and searched in {opening:.2f} s; a turn added in {adding * 1000:.2f} ms of CPU beside its vector; "
        f"memory {kept:.2f} x the vectors ({held:.2f})",
        flush=True,
    )
    return cuts[9]


async def neighbours(corpus: Corpus, embedder: Perturbed, size: int, folder: Path, turns: float) -> None:
    """Print how long others take for the nearest K among as many vectors, beside the search of `turns`."""
    rows = await embedder.embed([one.text for one in corpus.turns(size)], Purpose.DOCUMENT)
    asked = list(await embedder.embed(corpus.questions, Purpose.QUERY))
    for name, opened in (("sqlite-vec", _sqlite_vec), ("Chroma", _chroma), ("langgraph-sqlite", _langgraph)):
        search, took = opened(folder, rows), []
        for vector in asked:
            begun = process_time()
            if len(search(vector)) != K:
                raise AssertionError(name)
            took.append((process_time() - begun) * 1000)
        other = quantiles(took, n=20)[9]
        print(
            f"{name}, {size} vectors: p50 {other:.1f} ms of CPU; turns takes {turns / other:.2f} x as long", flush=True
        )


_NUMBER = re.compile(r"-?\d+")
_Search = Callable[[Vectors], Sequence[object]]


def _sqlite_vec(folder: Path, rows: Vectors) -> _Search:
    db = _database(folder / "vec.sqlite3")
    db.execute(f"CREATE VIRTUAL TABLE v USING vec0(e float[{rows.shape[1]}] distance_metric=cosine)")
    db.executemany("INSERT INTO v (rowid, e) VALUES (?, ?)", [(n, row.tobytes()) for n, row in enumerate(rows)])
    nearest = "SELECT rowid, distance FROM v WHERE e MATCH ? AND k = ?"
    return lambda vector: db.execute(nearest, (vector.tobytes(), K)).fetchall()


def _chroma(folder: Path, rows: Vectors) -> _Search:
    made = chromadb.PersistentClient(str(folder / "chroma")).create_collection("turns", embedding_function=None)
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        made.add(ids=[str(start + n) for n in range(len(part))], embeddings=part)
    return lambda vector: made.query(query_embeddings=[vector], n_results=K)["ids"][0]


def _langgraph(folder: Path, rows: Vectors) -> _Search:
    vectors = {str(number): row.tolist() for number, row in enumerate(rows)}

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [vectors[_NUMBER.findall(text)[0]] for text in texts]  # it hands over the value as JSON

    index = {"dims": rows.shape[1], "embed": embed}
    store = SqliteStore(_database(folder / "langgraph.sqlite3"), index=index)
    store.setup()
    for number in vectors:
        store.put(("v",), number, {"text": number})

    def search(vector: Vectors) -> Sequence[object]:
        vectors["-1"] = vector.tolist()
        return store.search(("v",), query="-1", limit=K)

    return search


def _database(file: Path) -> Any:
    """Return a connection that has sqlite-vec."""
    db = loading_driver().connect(str(file), isolation_level=None, check_same_thread=False)
    db.enable_load_extension(True)  # noqa: FBT003  (its only argument)
    sqlite_vec.load(db)
    return db


def _taken_by_a_new_process(folder: Path) -> list[int]:
    """Return the bytes that a store takes in memory, without and with what the allocator keeps of freed ones."""
    run = subprocess.run([sys.executable, __file__, OPENED, str(folder)], check=True, capture_output=True, text=True)  # noqa: S603
    return [int(number) for number in run.stdout.split()]


async def taken(folder: Path) -> None:
    """Print how much more memory this process has when all owners of a store were searched."""
    embedder = Drawn()

    async def search(where: Path, *, adds: bool = False) -> TurnsService:
        store, numbers = turns_in_folder(where, embedder.model), count()
        memory = TurnsService(store=store, embedder=embedder, clock=Noon(), new_id=lambda: f"id{next(numbers)}")
        if adds:
            await memory.add("owner", [NewTurn(text=f"Ann has {number} boats.") for number in range(100)])
        for owner in await memory.owners():
            await memory.search(owner, "Where is the boat of Ann now?", K)
        return memory

    with tempfile.TemporaryDirectory() as few:
        await (await search(Path(few), adds=True)).close()  # the code that is loaded is not of this store
    give_back = ctypes.CDLL(None).malloc_trim
    give_back(0)
    before = _resident()
    memory = await search(folder)
    held = _resident()
    give_back(0)
    print(_resident() - before, held - before)
    await memory.close()


def _resident() -> int:
    """Return the bytes of this process that are in memory, mapped ones among them."""
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * resource.getpagesize()


async def main(sizes: Sequence[str]) -> None:
    """Print a line for each size, such as 1000 or 1000x1000, and the ratios."""
    corpus, embedder = Corpus(), Perturbed()
    # With a number that nobody embedded before: vectors of known texts are kept in a file.
    new, begun = [f"{turn.text} {time_ns()}" for turn in corpus.turns(200)], process_time()
    await embedder.embed(new, Purpose.DOCUMENT)
    print(f"a turn is embedded in {(process_time() - begun) / len(new) * 1000:.1f} ms of CPU", flush=True)
    for words in sizes:
        owners, size = map(int, f"1x{words}".split("x")[-2:])
        with tempfile.TemporaryDirectory() as folder:
            median = await measure(corpus, embedder, owners, size, Path(folder))
            if owners == 1 and size == BESIDE:
                await neighbours(corpus, embedder, size, Path(folder), median)
    await embedder.close()


if __name__ == "__main__":
    asyncio.run(taken(Path(sys.argv[2])) if sys.argv[1:2] == [OPENED] else main(sys.argv[1:] or SIZES))
