"""From ten thousand memories to ten millions: search, adding, opening, memory and disk, of turns and layers.

`python benchmarks/growth.py --part turns-postgres` fills a store for each size, measures them in alternation (every
round asks each store once, the smallest first), writes a line of results for each, and removes what it filled. Stopped
and started again, it goes on where it was. `--sizes 10000 100000` leaves out the others, `--plot` draws all results.
A size whose loading takes longer than `--minutes`, whose store is larger than `--gigabytes`, or whose store does not
answer in time, is given up; its line is then drawn on from the sizes before it, by a power law, and is marked as
extrapolated, with the reason.

Vectors are drawn by chance, texts and questions are those of lifelines (turns) or made up (layers). An owner's
memories come in four parts, between those of all others, as they do where people take turns. Stores are filled by
their bulk path; `add` is one memory through the whole system. Each round is a new process: it opens the store and
searches (opening), then searches for three hundred owners by chance (first), and for these again, by chance (search).
Times are of the clock, in ms; postgres is the server of the wheel with its own settings, and waits for the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from math import floor, log10
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np
import psycopg

from memstory.bundled import bundled_stories
from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.servers.embedded_postgres import EmbeddedPostgres
from memstory_reference.composition.layers import layers_in_postgres
from memstory_reference.composition.turns import turns_in_folder, turns_in_postgres
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.layers.identity import OwnerSession
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.recall import Embeddings, Retrieval
from memstory_reference.systems.layers.records import Fact, MemoryRecord
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn
from memstory_reference.systems.turns.stores.turns_store import TurnsStore
from memstory_reference.systems.turns.turn import NewTurn, checked_turn

SURE = 60
"""Seconds of loading after which its pace is believed."""

RESULTS = Path(__file__).parent.parent / "reports" / "baseline" / "growth-to-millions.jsonl"
PLOT = RESULTS.parent.parent.parent / "docs" / "images" / "growth.svg"
DIMENSION, MODEL, K, SEARCHES, ADDS, PARTS_OF_OWNER, LOADED, ROUNDS, VISITED = (
    384,
    "chance",
    10,
    200,
    20,
    4,
    5_000,
    3,
    300,
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
THINGS = ("tea", "rowing", "chess", "violets", "trains", "bread", "maps", "rain", "cellos", "kites")
CURVE = (10_000, 30_000, 100_000, 300_000, 1_000_000)


@dataclass(frozen=True)
class Size:
    """So many owners with so many memories each."""

    owners: int
    each: int

    @property
    def memories(self) -> int:
        """All of them."""
        return self.owners * self.each

    def steps(self) -> Iterator[tuple[int, range]]:
        """Yield an owner and the numbers of what is loaded of it at once, in the order of loading."""
        part = min(-(-self.each // PARTS_OF_OWNER), LOADED)
        for start in range(0, self.each, part):
            for owner in range(self.owners):
                yield owner, range(start, min(start + part, self.each))


TABLES = "FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
OF_A_THOUSAND = tuple(Size(memories // 1_000, 1_000) for memories in CURVE)
OF_ONE = tuple(Size(1, memories) for memories in CURVE)
MANY = tuple(Size(memories // 1_000, 1_000) for memories in (100_000, 1_000_000, 10_000_000))
PARTS: dict[str, tuple[str, str, Sequence[Size]]] = {
    **{
        f"{system}-{engine}": (system, engine, OF_A_THOUSAND)
        for system in ("turns", "layers")
        for engine in ("sqlite", "postgres")
    },
    **{f"turns-{engine}-one-owner": ("turns", engine, OF_ONE) for engine in ("sqlite", "postgres")},
    **{f"turns-{engine}-10m": ("turns", engine, MANY) for engine in ("sqlite", "postgres")},
}


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return NOON

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


class Chance:
    """Unit vectors by chance."""

    model = MODEL
    dimension: int | None = DIMENSION

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = self._random.standard_normal((len(texts), DIMENSION), np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    async def close(self) -> None:
        """Nothing is open."""


class Turns:
    """Turns and questions of lifelines, again and again."""

    def __init__(self, store: TurnsStore, seed: int) -> None:
        folder, made = bundled_stories() / "corpora" / "lifelines", count()
        self._store, self._embedder = store, Chance(seed)
        self._service = TurnsService(
            store=store, embedder=self._embedder, clock=Noon(), new_id=lambda: f"new-{seed}-{next(made)}"
        )
        rows = [json.loads(line) for line in (folder / "turns.jsonl").read_text("utf-8").splitlines()]
        self._new = [
            NewTurn(
                text=row["text"].split(": ", 1)[1], speaker=of["speaker"], session=of["session"], said_at=of["said_at"]
            )
            for row in rows
            if (of := row["metadata"])["circle"] == 1
        ]
        turns = [checked_turn(one, "", NOON) for one in self._new]
        self._turns = [(turn, turn.stems) for turn in turns]
        asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
        self._questions = [row["text"] for row in asked if row["metadata"]["circle"] == 1]

    async def load(self, owner: int, numbers: range) -> None:
        vectors = await self._embedder.embed([""] * len(numbers), Purpose.DOCUMENT)
        written = []
        for number, vector in zip(numbers, vectors, strict=True):
            again, place = divmod(37 * owner + number, len(self._turns))
            turn, stems = self._turns[place]
            named = replace(turn, id=str(number), session=f"{turn.session}.{again}")
            written.append(IndexedTurn(turn=named, vector=vector, stems=stems))
        await self._store.put(f"owner {owner}", written)

    async def search(self, owner: int, number: int) -> int:
        return len(await self._service.search(f"owner {owner}", self._questions[number % len(self._questions)], K))

    async def add(self, owner: int, number: int) -> Callable[[], Awaitable[object]]:
        (stored,) = await self._service.add(f"owner {owner}", [self._new[number]])
        return lambda: self._service.delete(f"owner {owner}", [stored.turn.id])

    async def close(self) -> None:
        await self._service.close()


class Layers:
    """Facts, and what is read of them for a turn."""

    def __init__(self, store: LayersStore, seed: int) -> None:
        self._store, self._embedder = store, Chance(seed)
        self._retrieval = Retrieval(
            store=store, embeddings=Embeddings(self._embedder), config=LayersSettings(min_similarity=-1)
        )

    async def load(self, owner: int, numbers: range) -> None:
        vectors = await self._embedder.embed([""] * len(numbers), Purpose.DOCUMENT)
        await self._store.aput_batch(
            [_fact(owner, number, vector) for number, vector in zip(numbers, vectors, strict=True)]
        )

    async def search(self, owner: int, number: int) -> int:
        question = f"Do I like {THINGS[number % 10]} or {THINGS[number // 10 % 10]} of kind {number}?"
        who = OwnerSession(owner=f"owner {owner}", session="-")
        _, memory = await self._retrieval.load_turn(who, question, now=NOON, turns=0, lists=False)
        return 0 if memory is None else len(memory.recalled)

    async def add(self, owner: int, number: int) -> Callable[[], Awaitable[object]]:
        (vector,) = await self._embedder.embed([""], Purpose.DOCUMENT)
        record = _fact(owner, 10**9 + number, vector)
        await self._store.aput(record)
        return lambda: self._store.adelete(record.owner, [record.id])

    async def close(self) -> None:
        await self._store.aclose()


def _fact(owner: int, number: int, vector: Vectors) -> MemoryRecord:
    liked = f"{THINGS[number % 10]} with {THINGS[number // 10 % 10]}, kind {number}"
    return MemoryRecord(
        id=str(number),
        owner=f"owner {owner}",
        content=Fact(
            category="interest", subject="User", predicate="LIKES", object=liked, evidence_quote=f"I like {liked}"
        ),
        created_at=NOON + timedelta(seconds=number),
        updated_at=NOON,
        vector=vector,
    )


@dataclass(frozen=True)
class Place:
    """Where a store of one size is: `folder` has it, or how far it is filled where Postgres has it."""

    system: str
    engine: str
    size: Size
    folder: Path
    url: str

    @property
    def _schema(self) -> PostgresPlace:
        return PostgresPlace(url=self.url, schema=f"{self.system}_{self.size.owners}_{self.size.each}")

    async def opened(self, seed: int) -> Turns | Layers:
        """Open the system."""
        match self.system, self.engine:
            case "turns", "sqlite":
                return Turns(turns_in_folder(self.folder / "store", MODEL), seed)
            case "turns", _:
                return Turns(await turns_in_postgres(self._schema, MODEL), seed)
            case _, "sqlite":
                return Layers(LayersStore(layers_database(self.folder / "store" / "memory.sqlite3", model=MODEL)), seed)
        return Layers(await layers_in_postgres(self._schema, model=MODEL), seed)

    def disk(self) -> int:
        """Return the bytes of the store."""
        if self.engine == "sqlite":
            return sum(file.stat().st_blocks * 512 for file in self.folder.rglob("*") if file.is_file())
        with psycopg.connect(self.url) as connection:
            sized = f"SELECT pg_total_relation_size(oid) {TABLES}"
            return sum(int(size) for (size,) in connection.execute(sized, (self._schema.schema,)).fetchall())

    def settle(self) -> None:
        """Do what a server does by itself some minutes after a load: count rows, clean up, write to the disk."""
        if self.engine == "postgres":
            with psycopg.connect(self.url, autocommit=True) as connection:
                named = f"SELECT oid::regclass::text {TABLES}"
                for (table,) in connection.execute(named, (self._schema.schema,)).fetchall():
                    connection.execute(f"VACUUM ANALYZE {table}")
                connection.execute("CHECKPOINT")

    async def load(self, minutes: float, gigabytes: float) -> dict[str, Any]:
        """Fill the store from where the last attempt has come to; `given_up` says why it was not filled."""
        (self.folder / "store").mkdir(parents=True, exist_ok=True)
        progress = self.folder / "progress.json"
        known: dict[str, Any] = {"steps": 0, "seconds": 0.0}
        if progress.exists():
            known = json.loads(progress.read_text("utf-8"))
        if known.get("is_full"):
            return known
        known.pop("given_up", None)
        filled, begun, steps = await self.opened(known["steps"] + 1), perf_counter(), list(self.size.steps())
        before = known["seconds"]
        for number, (owner, numbers) in enumerate(steps[known["steps"] :], known["steps"] + 1):
            await filled.load(owner, numbers)
            known |= {"steps": number, "seconds": before + perf_counter() - begun}
            if number % 100 == 0 or number == len(steps):
                share = number / len(steps)
                if known["seconds"] / share > minutes * 60 and known["seconds"] > SURE:
                    known["given_up"] = f"loading would take {known['seconds'] / share / 60:.0f} minutes"
                elif number % 1_000 == 0 and self.disk() / share > gigabytes * 1e9:
                    known["given_up"] = f"it would take {self.disk() / share / 1e9:.0f} GB"
                progress.write_text(json.dumps(known), "utf-8")
                print(f"  {self.size.memories:,}: {share:.0%}, {known['seconds']:.0f} s", flush=True)
            if known.get("given_up"):
                break
        await filled.close()
        if not known.get("given_up"):
            known["is_full"] = True
            self.settle()
        progress.write_text(json.dumps(known), "utf-8")
        return known


async def ask(place: Place, seed: int) -> dict[str, Any]:
    """Return what one round finds in a store: milliseconds of each call, and bytes of this process."""
    chance, size = Random(seed), place.size  # noqa: S311  (whom to ask, not a secret)
    before, begun = _resident(), perf_counter()
    system = await place.opened(10**6 + seed)
    await system.search(chance.randrange(size.owners), 0)
    opening = (perf_counter() - begun) * 1_000

    async def took(owner: int, number: int) -> float:
        begun = perf_counter()
        if not await system.search(owner, number):
            raise SystemExit(f"owner {owner} was given nothing: the figure would mean nothing")
        return (perf_counter() - begun) * 1_000

    owners = chance.sample(range(size.owners), min(size.owners, VISITED))
    first = [await took(owner, number) for number, owner in enumerate(owners)]
    search = [await took(chance.choice(owners), number) for number in range(SEARCHES)]
    added = []
    for number in range(ADDS):
        begun = perf_counter()
        undo = await system.add(chance.choice(owners), number)
        added.append((perf_counter() - begun) * 1_000)
        await undo()
    memory = _resident() - before
    server = _server_memory()  # while its connections are open
    await system.close()
    return {"opening": opening, "first": first, "search": search, "add": added, "memory": memory, "server": server}


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


def _server_memory() -> int:
    """Return the bytes of all processes of Postgres on this machine that this user may look at, shared ones once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text("utf-8").strip() == "postgres" and os.environ.get("GROWTH_SERVER", "-") in (
                folder / "cmdline"
            ).read_text("utf-8", "replace") + str((folder / "cwd").readlink()):
                rollup = (folder / "smaps_rollup").read_text("ascii")
                total += next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
        except OSError:
            continue
    return total


def summary(
    part: str, place: Place, loaded: dict[str, Any], rounds: Sequence[dict[str, Any]], begun: str
) -> dict[str, Any]:
    """Return the line of results of one size."""

    def cuts(name: str) -> dict[str, float]:
        found = quantiles([one for took in rounds for one in took[name]], n=20)
        return {"p50": round(found[9], 2), "p95": round(found[18], 2)}

    return {
        "part": part,
        "system": place.system,
        "engine": place.engine,
        "owners": place.size.owners,
        "memories": place.size.memories,
        "loaded_a_second": round(place.size.memories / loaded["seconds"]),
        "add": cuts("add"),
        "search": cuts("search"),
        "search_p95_of_rounds": [round(quantiles(took["search"], n=20)[18], 2) for took in rounds],
        "first": cuts("first") if place.size.owners > 1 else None,
        "opening": round(median(took["opening"] for took in rounds)),
        "memory_mb": round(median(took["memory"] for took in rounds) / 1e6),
        "server_mb": round(median(took["server"] for took in rounds) / 1e6) if place.engine == "postgres" else None,
        "disk_mb": round(place.disk() / 1e6),
        "begun": begun,
        "load_average": round(os.getloadavg()[2], 1),
        "extrapolated": False,
    }


def drawn_on(place: Place, why: str, known: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the line of a size that was not measured: figures on the power law nearest to all that were.

    What an add and a first search cost is left out: it hangs on the owner's memories, not on those of all.
    """

    def further(*found: Any) -> Any:
        if isinstance(found[0], dict):
            return {name: further(*(one[name] for one in found)) for name in found[0]}
        if not all(found):
            return None
        slope, constant = np.polyfit(np.log([one["memories"] for one in known]), np.log(found), 1)
        return round(float(np.exp(constant) * place.size.memories**slope), 2)

    figures = ("loaded_a_second", "search", "opening", "memory_mb", "server_mb", "disk_mb")
    named = {"owners": place.size.owners, "memories": place.size.memories, "extrapolated": True, "why": why}
    drawn = {name: further(*(one[name] for one in known)) for name in figures}
    return {**known[-1], **drawn, **named, "add": None, "first": None, "search_p95_of_rounds": None}


def run(part: str, given: argparse.Namespace) -> None:
    """Fill, ask and write down one part; remove what was filled."""
    system, engine, sizes = PARTS[part]
    folder, begun = given.folder / part, datetime.now(UTC).isoformat(timespec="minutes")
    folder.mkdir(parents=True, exist_ok=True)
    server = EmbeddedPostgres(folder)
    try:
        url = server.start() if engine == "postgres" else ""
        os.environ["GROWTH_SERVER"] = str(server.folder)
        places = [
            Place(system, engine, size, folder / str(size.memories), url)
            for size in sizes
            if size.memories in given.sizes or not given.sizes
        ]
        loaded = {}
        for place in places:
            print(f"{part}: {place.size.memories:,} of {place.size.owners:,} owners", flush=True)
            loaded[place] = asyncio.run(place.load(given.minutes, given.gigabytes))
        full = [place for place in places if not loaded[place].get("given_up")]
        rounds = {place: list[dict[str, Any]]() for place in full}
        for number in range(given.rounds):
            for place in tuple(full):
                asked = _round(part, place, number)
                print(f"  round {number}, {place.size.memories:,}: {asked.get('failed', 'asked')}", flush=True)
                rounds[place].append(asked)
                if "failed" in asked:
                    loaded[place]["given_up"] = asked["failed"]
                    full.remove(place)
        lines = list[dict[str, Any]]()
        for place in places:
            if place in full:
                lines.append(summary(part, place, loaded[place], rounds[place], begun))
            elif len(known := [line for line in lines if not line["extrapolated"]]) > 1:
                lines.append(drawn_on(place, loaded[place]["given_up"], known))
        _write(given.results, part, lines)
        for line in lines:
            print(json.dumps(line), flush=True)
    finally:
        server.halt()
    if not given.keep:
        server.stop()
        shutil.rmtree(folder)


def _round(part: str, place: Place, number: int) -> dict[str, Any]:
    """Ask a store in a new process; what was asked before an interruption is kept."""
    kept = place.folder / f"round-{number}.json"
    if not kept.exists():
        words = [
            sys.executable,
            __file__,
            "--ask",
            part,
            str(place.size.memories),
            str(place.folder),
            place.url,
            str(number),
        ]
        told = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
        kept.write_text(told, "utf-8")
    return dict(json.loads(kept.read_text("utf-8")))


def _asked(part: str, memories: str, folder: str, url: str, number: str) -> None:
    system, engine, sizes = PARTS[part]
    size = next(size for size in sizes if size.memories == int(memories))
    try:
        found = asyncio.run(ask(Place(system, engine, size, Path(folder), url), int(number)))
    except UnavailableError as error:
        found = {"failed": str(error)}
    print(json.dumps(found))


def read(file: Path) -> list[dict[str, Any]]:
    """Return the lines of results."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def _write(file: Path, part: str, lines: Sequence[dict[str, Any]]) -> None:
    every = [one for one in read(file) if one["part"] != part] + list(lines)
    every.sort(key=lambda one: (list(PARTS).index(one["part"]), one["memories"]))
    file.write_text("".join(f"{json.dumps(one)}\n" for one in every), "utf-8")


COLOURS = {"sqlite": "#1b7f5c", "postgres": "#2f5fb3"}
DASHES = {"turns": "none", "layers": "6 4"}
WIDE, HIGH, LEFT, TOP, APART = 340, 190, 46, 28, 36
PANELS = (
    ("search, p95 in ms", lambda one: one["search"]["p95"]),
    ("one memory added, p50 in ms", lambda one: one["add"] and one["add"]["p50"]),
    ("opened and first search, in ms", lambda one: one["opening"]),
    ("on disk, in MB", lambda one: one["disk_mb"]),
)


def plot(lines: Sequence[dict[str, Any]]) -> str:
    """Return the drawing of all results: a panel a figure, both axes logarithmic, what is extrapolated hollow."""
    drawn = [
        _panel(
            title,
            [(one, value) for one in lines if (value := of(one)) is not None],
            number % 2 * (WIDE + APART),
            number // 2 * (HIGH + 2 * APART),
        )
        for number, (title, of) in enumerate(PANELS)
    ]
    names = list(dict.fromkeys((one["system"], one["engine"], _owners(one)) for one in lines))
    legend = "".join(
        f'<g transform="translate({number % 3 * 235 + 8},{2 * (HIGH + 2 * APART) + number // 3 * 18})">'
        f'<path d="M0 0H26" stroke="{COLOURS[engine]}" stroke-dasharray="{DASHES[system]}" '
        f'stroke-width="{_width(owners)}"/><text x="32" y="4">{system}, {engine}, {owners}</text></g>'
        for number, (system, engine, owners) in enumerate(names)
    )
    height = 2 * (HIGH + 2 * APART) + 18 * -(-len(names) // 3)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -8 {2 * WIDE + 2 * APART} {height + 8}" '
        'font-family="sans-serif" font-size="11" fill="none"><style>text{fill:#444}</style>'
        f"<title>How turns and layers grow: memories along the bottom</title>{''.join(drawn)}{legend}</svg>\n"
    )


def _owners(one: dict[str, Any]) -> str:
    return "one owner" if one["owners"] == 1 else "1,000 an owner"


def _width(owners: str) -> float:
    return 1.5 if owners == "one owner" else 2.5


def _panel(title: str, marks: Sequence[tuple[dict[str, Any], float]], across: int, down: int) -> str:
    tens = [floor(log10(max(value, 0.1))) for _, value in marks]
    low, high = min(tens), max(tens) + 1
    first, last = (log10(bound(one["memories"] for one, _ in marks)) for bound in (min, max))

    def x(memories: float) -> float:
        return LEFT + (WIDE - LEFT) * (log10(memories) - first) / ((last - first) or 1)

    def y(value: float) -> float:
        return TOP + (HIGH - TOP) * (high - log10(max(value, 0.1))) / (high - low)

    lines = [f'<text x="{LEFT}" y="12" font-weight="bold">{title}</text>']
    for ten in range(low, high + 1):
        at = y(10.0**ten)
        lines.append(f'<path d="M{LEFT} {at:.1f}H{WIDE}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 4}" y="{at + 4:.1f}" text-anchor="end">{10.0**ten:,g}</text>')
    lines += [
        f'<text x="{x(memories):.1f}" y="{HIGH + 16}" text-anchor="middle">{memories:,}</text>'
        for memories in sorted({one["memories"] for one, _ in marks if log10(one["memories"]).is_integer()})
    ]
    parts: dict[str, list[tuple[dict[str, Any], float]]] = {}
    for one, value in marks:
        parts.setdefault(one["part"], []).append((one, value))
    for found in parts.values():
        one, colour = found[0][0], COLOURS[found[0][0]["engine"]]
        path = " ".join(f"{x(each['memories']):.1f},{y(value):.1f}" for each, value in found)
        lines.append(
            f'<polyline points="{path}" stroke="{colour}" stroke-dasharray="{DASHES[one["system"]]}" '
            f'stroke-width="{_width(_owners(one))}"/>'
        )
        for each, value in found:
            inside = "#fff" if each["extrapolated"] else colour
            place = f'cx="{x(each["memories"]):.1f}" cy="{y(value):.1f}"'
            lines.append(f'<circle {place} r="3.5" fill="{inside}" stroke="{colour}"/>')
    return f'<g transform="translate({across},{down})">{"".join(lines)}</g>'


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Return the results as a table of Markdown."""
    rows = [
        (
            "| system, engine | memories | owners | loaded a second | added, p50 | search p50 / p95 | "
            "first search of an owner, p50 / p95 | opened | memory of the process / the server | disk |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in lines:
        first = f"{one['first']['p50']:.0f} / {one['first']['p95']:.0f} ms" if one["first"] else "–"
        server = "–" if one["server_mb"] is None else f"{one['server_mb']:,.0f} MB"
        cells = (
            f"{one['system']}, {one['engine']}",
            f"{one['memories']:,}{' (extrapolated)' * one['extrapolated']}",
            f"{one['owners']:,}",
            f"{one['loaded_a_second']:,.0f}",
            f"{one['add']['p50']:.0f} ms" if one["add"] else "–",
            f"{one['search']['p50']:.0f} / {one['search']['p95']:.0f} ms",
            first,
            f"{one['opening'] / 1000:.1f} s",
            f"{one['memory_mb']:,.0f} MB / {server}",
            f"{one['disk_mb']:,.0f} MB",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    """Run the named parts, or draw."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--part", action="append", choices=list(PARTS), default=[])
    reader.add_argument("--sizes", type=int, nargs="+", default=(), help="memories of the stores, of those of the part")
    reader.add_argument("--rounds", type=int, default=ROUNDS)
    reader.add_argument("--minutes", type=float, default=90)
    reader.add_argument("--gigabytes", type=float, default=40)
    reader.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "memstory-growth")
    reader.add_argument("--results", type=Path, default=RESULTS)
    reader.add_argument("--keep", action="store_true", help="leave the stores where they are, for a next run")
    reader.add_argument("--plot", action="store_true", help="draw the results, and print them as a table")
    reader.add_argument("--ask", nargs=5, help=argparse.SUPPRESS)
    given = reader.parse_args()
    if given.ask:
        _asked(*given.ask)
        return
    for part in given.part:
        run(part, given)
    if given.plot:
        PLOT.write_text(plot(read(given.results)), "utf-8")
        print(table(read(given.results)))
    if not given.part and not given.plot:
        print(f"choose one with --part: {', '.join(PARTS)}")


if __name__ == "__main__":
    main()
