"""What all six memories promise whoever opens them, on each of their engines; a seventh is one more entry of MEMORIES.

`killing.py` forks and kills what `write` does here, then calls `verify`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from inspect import Parameter, signature
from itertools import count
from math import nan

import numpy as np
import pytest

from memstory.contract.errors import MemstoryError, NotSupported, UnavailableError
from memstory.contract.target import Item, Query, Ref, Scope
from memstory_reference import AsyncMemory
from memstory_reference.adapters.embedding.fixed_vectors import CountedWords
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import EmbedderUnavailableError

CARD, LONE = "My card is 4111 1111 1111 1111.", "half \ud800"


async def vectors_of_all(memory, owner):
    status = await memory.memory.inspect("status", {}, Scope(user=owner))
    assert (status["vectors"], status["pending"]) == (status["observations"], 0)


async def archive_and_centroid(memory, owner):
    assert await memory.memory.inspect("drift", {}, Scope(user=owner)) <= 1e-6
    rows = await memory.memory.export_rows(Scope(user=owner))
    stood_for = {row["summary_id"] for row in rows if row["compressed"]}
    assert stood_for == {row["id"] for row in rows if row["compression_source"]}


async def compress(memory, owner):
    await memory.run("compress", owner)


async def nothing(*_):
    pass


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A memory on one of its engines, and the settings and the kind by which it keeps every text as it was told.

    Writers that are killed do what is in `also`, too, and `sound` looks at what is the memory's own.
    """

    system: str
    engine: str = "sqlite"
    kind: str | None = None
    settings: dict = field(default_factory=dict)
    also: object = nothing
    sound: object = nothing

    async def open(self, place, ports=None, **changes):
        system = SYSTEMS[self.system]
        given = {"embedding_model": "words", **self.settings, system.place: str(place), **changes}
        if self.engine == "chroma":
            given["store"] = "chroma"
        return AsyncMemory(memory=await system.open(system.settings(None, given, "test"), ports), owner="ann")


AT_NOON = {"timezone": f"Etc/GMT{datetime.now(UTC).hour - 12:+}"}
"""What is kept for a day is there to the end of the tests."""

PIPELINE = Entry(
    system="pipeline",
    kind="episodic",
    settings={"store_threshold": 0, "min_chunk_tokens": 1, "compression_threshold": 3, "auto_compress": False},
    also=compress,
    sound=archive_and_centroid,
)

MEMORIES = {
    "layers": Entry(system="layers"),
    "layers-postgres": Entry(system="layers", engine="postgres"),
    "manager": Entry(system="manager", settings=AT_NOON),
    "manager-chroma": Entry(system="manager", engine="chroma", settings=AT_NOON),
    "manager-postgres": Entry(system="manager", engine="postgres", settings=AT_NOON),
    "observations": Entry(system="observations", sound=vectors_of_all),
    "observations-chroma": Entry(system="observations", engine="chroma"),
    "observations-postgres": Entry(system="observations", engine="postgres", sound=vectors_of_all),
    "pipeline": PIPELINE,
    "pipeline-postgres": replace(PIPELINE, engine="postgres"),
    "topics": Entry(system="topics"),
    "topics-chroma": Entry(system="topics", engine="chroma"),
    "topics-postgres": Entry(system="topics", engine="postgres"),
    "turns": Entry(system="turns"),
    "turns-postgres": Entry(system="turns", engine="postgres"),
}


@pytest.fixture(params=MEMORIES)
def name(request):
    return request.param


@pytest.fixture
def entry(name):
    return MEMORIES[name]


@pytest.fixture
def place(request, entry, tmp_path):
    """Where the memories are: a folder, or the URL of a database."""
    return request.getfixturevalue("postgres_database") if entry.engine == "postgres" else tmp_path / "memory"


class FitfulEmbedder(CountedWords):
    """Counts words, and says what it was asked; `answer` is given instead, or raised."""

    def __init__(self):
        super().__init__()
        self.asked, self.answer = [], None

    async def embed(self, texts, purpose):
        self.asked += texts
        if isinstance(self.answer, Exception):
            raise self.answer
        return await super().embed(texts, purpose) if self.answer is None else np.array([self.answer] * len(texts))


@pytest.fixture
def embedder():
    return FitfulEmbedder()


@pytest.fixture
async def opening(entry, place, embedder):
    """`await opening()` opens the memory on `embedder`; what is left open is closed."""

    opened = []

    async def open_(**settings):
        opened.append(await entry.open(place, MemoryPorts(embedder=embedder), **settings))
        return opened[-1]

    yield open_
    for memory in opened:
        await memory.close()


@pytest.fixture
async def memory(opening):
    return await opening()


def can(memory, operation):
    return operation in type(memory.memory).capabilities()


async def texts(memory, owner="ann"):
    return sorted(hit.text for hit in await memory.list(owner))


# --- A wrong input is refused by name, and nothing is stored; before any engine is asked.

on_each_system = pytest.mark.parametrize(
    "name", [name for name, one in MEMORIES.items() if one.engine == "sqlite"], indirect=True
)

NO_NAMES = ("", " ", "\n", "a\nb", "x" * 513, LONE, 5, "\u2028")


def calls_of(memory, **whose):
    """What a program calls."""
    yield memory.add("Bees hum.", **whose)
    yield memory.search("bees", **whose)
    yield memory.list(**whose)
    yield memory.delete_all(**whose)
    yield memory.say("Bees hum.", **whose)
    yield memory.call_tool("dance", {}, **whose)
    if "user" in whose:
        yield memory.get("id", **whose)
        yield memory.update("id", "Bees hum.", **whose)
        yield memory.delete("id", **whose)
        yield memory.forget("id", **whose)
        yield memory.context("bees", **whose)
        yield memory.run("reindex", **whose)


def operations_of(memory, scope):
    """What the harness, the commands, MCP and HTTP call."""
    yield memory.add([Item(text="Bees hum.")], scope)
    yield memory.search(Query(text="bees"), scope)
    yield memory.list(scope)
    yield memory.get(Ref(id="id"), scope)
    yield memory.update(Ref(id="id"), Item(text="Bees hum."), scope)
    yield memory.delete(Ref(id="id"), scope)
    yield memory.delete(Ref(), scope)
    yield memory.delete_about(["bees"], scope)
    yield memory.feedback(Ref(id="id"), 1, scope)
    yield memory.context(Query(text="bees"), scope)
    yield memory.repeats("id", scope)
    yield memory.forget("id", scope)
    yield memory.export_rows(scope)
    yield memory.inspect("status", {}, scope)
    yield memory.say("Bees hum.", scope)


@on_each_system
@pytest.mark.parametrize("what", ["owner", "session"])
async def test_a_name_that_is_none_is_refused_by_every_call_and_never_a_shared_one(memory, entry, what):
    await memory.add("Wasps sting.", kind=entry.kind)
    for wrong in NO_NAMES:
        for call in calls_of(memory, **{"user" if what == "owner" else what: wrong}):
            with pytest.raises(InputError, match=what):
                await call
        for call in operations_of(memory.memory, Scope(user=wrong)) if what == "owner" else ():
            with pytest.raises((InputError, NotSupported), match=r"owner|user_id|belongs to somebody|not support"):
                await call
    assert await texts(memory) == ["Wasps sting."]


NO_TEXTS = (None, 5, {"$ne": ""}, "", " \n", "x" * 1_000_001)
NO_OBJECTS = (["a"], "a", 5, {1: 2})
NO_QUERIES = (None, 5, {"$ne": ""}, "x" * 1_000_001)
WRONG = {
    "add": [
        *(((text,), {}) for text in NO_TEXTS),
        *((("Bees.",), {"metadata": one}) for one in NO_OBJECTS),
        *((("Bees.",), {"kind": one}) for one in ("gossip", 5, [])),
        *((("Bees.",), {"key": one}) for one in (5, [], LONE)),
    ],
    "search": [
        *(((query,), {}) for query in NO_QUERIES),
        *((("bees",), {"limit": one}) for one in (-1, True, "5", 1.5, 10**9, 10**400)),
        *((("bees",), {"min_score": one}) for one in (nan, "0.3", 7, True)),
        *((("bees",), {"where": one}) for one in NO_OBJECTS),
    ],
    "list": [((), {"kind": one}) for one in ("gossip", 5, [])],
    "update": [(("unknown", "Bees."), {}), *((("kept", text), {}) for text in NO_TEXTS)],
    **{method: [((one,), {}) for one in (None, 5, {"$ne": ""})] for method in ("get", "delete", "forget")},
    # A question of any length is one: it is cut.
    "context": [*(((query,), {}) for query in NO_QUERIES[:-1]), *((("bees",), {"tokens": one}) for one in (-1, "5"))],
    "say": [((text,), {}) for text in NO_TEXTS],
    "call_tool": [((one, {}), {}) for one in (None, 5, {})],
}


@on_each_system
async def test_a_wrong_argument_is_refused_by_name_and_neither_embedded_nor_stored(memory, entry, embedder):
    (kept,) = await memory.add("Wasps sting.", kind=entry.kind)
    asked = len(embedder.asked)
    for method, arguments, named in ((method, *one) for method, calls in WRONG.items() for one in calls):
        given = [kept if one == "kept" else one for one in arguments]
        try:
            answer = await getattr(memory, method)(*given, **named)
        except (InputError, NotSupported) as refusal:
            assert len(str(refusal).encode()) < 800  # noqa: PT017  (each of many)
        else:
            pytest.fail(f"{method}{arguments!r:.80} {named!r:.80} is taken: {answer!r:.80}")
    assert (await texts(memory), len(embedder.asked)) == (["Wasps sting."], asked)


@on_each_system
async def test_one_wrong_text_among_others_is_refused_with_all_or_says_so(memory, entry):
    items = [Item(text=one, kind=entry.kind) for one in ("Wasps sting.", " ")]
    try:
        receipt = await memory.memory.add(items, Scope(user="ann"))
    except InputError:
        assert await texts(memory) == []
    else:
        assert [one.outcome for one in receipt.items] == ["stored", "dropped"][: len(receipt.items)]
        assert await texts(memory) == ["Wasps sting."]


@on_each_system
@pytest.mark.parametrize("row", [3, "tea", None])
async def test_a_row_that_is_no_object_is_refused_with_its_number(memory, row):
    with pytest.raises(InputError, match=rf"^row(?: 1|s\[0\]): .*, not {type(row).__name__}$"):
        await memory.memory.import_rows([row], Scope(user="ann"))
    assert await texts(memory) == []


@on_each_system
async def test_a_secret_is_neither_stored_nor_embedded_on_any_way_in(memory, entry, embedder):
    scope = Scope(user="ann")
    (kept,) = await memory.add("Wasps sting.", kind=entry.kind)
    rows = json.loads(json.dumps(await memory.memory.export_rows(scope)).replace("Wasps sting.", CARD))
    ways = (
        lambda: memory.add(CARD, kind=entry.kind),
        lambda: memory.add("Bees.", kind=entry.kind, metadata={"note": CARD}),
        lambda: memory.update(kept, CARD),
        lambda: memory.memory.import_rows([{**one, "id": "new"} for one in rows], scope),
    )
    for way in ways:
        try:
            said = str(await way())
        except (InputError, NotSupported) as refusal:
            said = str(refusal)
        assert "4111" not in said
    for tool in await memory.tools():
        told = {name: CARD for name in ("content", "text") if name in tool.parameters["properties"]}
        if told:
            topic = {"topic": "user.card"} if "topic" in tool.parameters["properties"] else {}
            assert "4111" not in str((await memory.call_tool(tool.name, {**topic, **told})).error)
    assert not [one for one in embedder.asked if "4111" in one]
    with suppress(NotSupported):
        await memory.say(CARD)
    await memory.settle()
    if can(memory, "add.key"):
        # A model makes keys of the words that it saves.
        await memory.add(CARD, kind=entry.kind, key="user.card_4111_1111_1111_1111")
    every = [*await memory.list(), *await memory.memory.list_archived(scope), *await memory.memory.export_rows(scope)]
    assert every
    assert "4111" not in str(every)


SAID = ("I like green tea.", "Bees hum.", "I live in Oslo.", "my PIN is 4711", CARD, "Ünïcödé 🦀", "Forget Oslo.")


def any_call(memory, tools, chance, ids):
    """Return a call of a method, a tool or a job, with arguments of which most are right."""
    one, user = chance.one, chance.one("bob", "eve")
    session, inner, scope = one(None, "s"), memory.memory, Scope(user=user if isinstance(user, str) else "bob")
    tool = chance.random.choice(tools)
    given = {name: one("tea", 3, *ids) for name in tool.parameters["properties"]}
    jobs = [name.removeprefix("job.") for name in type(memory.memory).capabilities() if name.startswith("job.")]
    job = chance.random.choice(sorted(jobs) or ["dance"])
    takes = signature(getattr(memory.memory, f"_job_{job}", lambda: None)).parameters.values()
    arguments = {it.name: one("tea", 1, [], *ids) for it in takes if it.kind is Parameter.KEYWORD_ONLY}
    made = (
        lambda: memory.add(one(*SAID), user, session=session, key=one(None, "user.k"), metadata=one(None, {"a": 1})),
        lambda: memory.add(one(*SAID), user, session=session, kind=one(None, "fact", "episodic")),
        lambda: memory.search(one(*SAID), user, one(None, 1, 5), session=session, where=one(None, None, {"a": 1})),
        lambda: memory.search(one(*SAID), user, min_score=one(None, 0.1)),
        lambda: memory.get(one(*ids), user),
        lambda: memory.list(user, session=session, kind=one(None)),
        lambda: memory.update(one(*ids), one(*SAID), user),
        lambda: memory.delete(one(*ids), user),
        lambda: memory.forget(one(*ids), user),
        lambda: memory.delete_all(user, session=one("s")),
        lambda: memory.context(one(*SAID), user, tokens=one(None, 50)),
        lambda: memory.say(one(*SAID), user, session=one("s")),
        lambda: memory.call_tool(one(tool.name), one(given), user, session=session),
        lambda: memory.run(job, user, **arguments),
        lambda: inner.add([Item(text=one(*SAID), key=one(None), metadata={"a": one(1)}) for _ in range(2)], scope),
        lambda: inner.update(Ref(id=one(*ids)), Item(text=one(*SAID), metadata={"a": one(1)}), scope),
        lambda: inner.search(Query(text=one(*SAID), top_k=one(5), where={"a": one(1)}), scope),
        lambda: inner.search(Query(text=one(*SAID), min_score=one(0.1)), scope),
        lambda: inner.context(Query(text=one(*SAID), token_budget=one(50)), scope),
        lambda: inner.feedback(Ref(id=one(*ids)), one(1, -1), scope),
        lambda: inner.import_rows([{"id": one(*ids), "text": one(*SAID), "kind": one(None), "key": one(None)}], scope),
    )
    return chance.random.choice(made)


@pytest.mark.doses("fuzzed", 200, 20_000)
async def test_any_argument_is_taken_or_refused_and_harms_no_other_memory(memory, entry, chance, fuzzed):
    (kept,) = await memory.add("The relay is Plimquart.", kind=entry.kind)
    before, tools = await memory.list(), await memory.tools()
    refused, ids = 0, ["unknown", kept]
    for _ in range(fuzzed):
        try:
            answer = await any_call(memory, tools, chance, ids)()
        except MemstoryError as error:
            refused += 1
            str(error).encode()
        else:
            made = [one for one in answer if isinstance(one, str)] if isinstance(answer, list) else []
            ids = [kept, *[*ids, *made][-3:]]
    await memory.settle()
    assert fuzzed // 10 < refused < fuzzed * 3 // 4
    assert await memory.list() == before
    assert [hit.id for hit in await memory.search("relay Plimquart")] == [kept]


# --- Two owners never meet, and what is done side by side is not lost.


async def live(memory, entry, owner, chance, *, kept, end):
    """Do what callers do until it is over: each answer is the owner's own."""
    other = {"ann": "bob", "bob": "ann"}[owner]
    for step in count():
        if step and time.monotonic() > end:
            return
        await asyncio.sleep(0)
        number = chance.randrange(10**9)
        (shared,) = await memory.add(f"Dish {number % 20} of town{number % 20}.", owner, kind=entry.kind, session="s")
        own = f"Dish {number} is told by {owner}."
        (mine,) = await memory.add(own, owner, kind=entry.kind, session=f"s{number % 3}")
        kept[owner][own] = mine
        found = await memory.search(own, owner, 20)
        found += [await memory.get(mine, owner), await memory.get(shared, owner)]
        if can(memory, "add.key"):
            await memory.add(f"This key is told by {owner}.", owner, key="user.k", session="s")
            found.append(await memory.memory.get(Ref(key="user.k"), Scope(user=owner, session="s")))
        if can(memory, "context"):
            assert f"by {other}" not in await memory.context(own, owner)
        assert not [hit for hit in found if hit is None or f"by {other}" in hit.text]
        for one in [*kept[other].values()][:2]:
            assert await memory.get(one, owner) is None
            assert await memory.delete(one, owner) is False
            assert [*await memory.forget(one, owner)] == []
            if can(memory, "feedback"):
                assert await memory.memory.feedback(Ref(id=one), 1, Scope(user=owner)) is False
            with pytest.raises((InputError, NotSupported)):
                await memory.update(one, "It is taken over.", owner)
        if chance.random() < 0.3:
            del kept[owner][own]
            assert await memory.delete(mine, owner) is True
        if chance.random() < 0.05:
            await entry.also(memory, owner)


@pytest.mark.doses("seconds", 0, 30)
async def test_fifty_tasks_of_two_owners_with_the_same_texts_never_meet_and_lose_nothing(memory, entry, seconds):
    kept, end = {"ann": {}, "bob": {}}, time.monotonic() + seconds
    chances = [(("ann", "bob")[number % 2], random.Random(number)) for number in range(50)]  # noqa: S311  (no secrets)
    await asyncio.gather(*(live(memory, entry, *one, kept=kept, end=end) for one in chances))
    assert all(kept.values())
    for owner, own in kept.items():
        # A summary tells again what it stands for.
        stored = [hit for hit in await memory.list(owner) if not hit.metadata.get("compression_source")]
        told = Counter(hit.text for hit in stored if "is told by" in hit.text)
        assert told - Counter([f"This key is told by {owner}."]) == Counter([*own])
        await entry.sound(memory, owner)


# --- The models, the folder and the server are ports: what they do wrong is told, and changes nothing.

BAD = {
    "zero": [0.0] * 512,
    "no numbers": [nan] * 512,
    "infinite": [float("inf")] * 512,
    "short": [1.0] * 8,
    "down": EmbedderUnavailableError("it is down; start it"),
}


async def test_an_embedder_that_is_down_or_gives_garbage_leaves_nothing_half_written(opening, entry, embedder):
    memory, whole = await opening(), ["The ferry leaves at nine."]
    (kept,) = await memory.add(*whole, kind=entry.kind)
    await memory.add("The ferry leaves at ten.", "bob", kind=entry.kind)
    for name, answer in BAD.items():
        embedder.answer, text = answer, f"The kettle sings {name}."
        if entry.system == "layers":  # keeps what has no vector, and finds it by its words
            (new,) = await memory.add(text, kind=entry.kind)
            assert new in [hit.id for hit in await memory.search(text)]
            whole.append(text)
            continue
        with pytest.raises((UnavailableError, StoreConflictError)):
            await memory.add(text, kind=entry.kind)
        with pytest.raises((UnavailableError, StoreConflictError)):
            await memory.search(text)
        with pytest.raises((UnavailableError, StoreConflictError, NotSupported)):
            await memory.update(kept, "The ferry leaves at once.")
    embedder.answer = None
    await memory.add("The garden has a bench.", kind=entry.kind)
    assert await texts(memory) == sorted([*whole, "The garden has a bench."])
    await memory.close()
    memory = await opening()
    assert (await memory.search("When does the ferry leave?", "bob"))[0].text == "The ferry leaves at ten."
    assert (await memory.search("garden bench"))[0].text == "The garden has a bench."


async def test_an_embedder_of_another_dimension_than_the_store_says_so_and_changes_nothing(opening, entry, embedder):
    memory = await opening()
    await memory.add("The ferry leaves at nine.", kind=entry.kind)
    await memory.close()
    embedder.dimension, embedder.answer = 8, [1.0] * 8
    with pytest.raises((StoreConflictError, UnavailableError), match="512"):
        await use(await opening())
    embedder.dimension, embedder.answer = 512, None
    memory = await opening()
    assert (await memory.search("ferry"))[0].text == "The ferry leaves at nine."


async def use(memory):
    try:
        await memory.search("ferry")
    finally:
        await memory.close()


async def test_a_folder_has_one_memory_at_a_time_and_one_model_and_is_let_go(opening, entry, place):
    memory = await opening()
    await memory.add("The ferry leaves at nine.", kind=entry.kind)
    if entry.engine != "postgres":  # which many processes share
        with pytest.raises(StoreConflictError, match="in use"):
            await opening()
    await memory.close()
    with pytest.raises(StoreConflictError, match="words-512"):
        await use(await entry.open(place, embedding_model="random"))
    memory = await opening()
    assert (await memory.search("ferry"))[0].text == "The ferry leaves at nine."


# --- Nothing that was acknowledged is lost by a kill. Chroma's own files do not promise it.

OWNERS = ("ana", "bob")
NAME, PLACE = "name", "place"
"""The files that say which memory is written, and where it is."""


async def reopen(folder):
    entry, place = MEMORIES[(folder / NAME).read_text()], (folder / PLACE).read_text()
    if entry.engine == "postgres":
        await the_end_of_the_others(place)
    return entry, await entry.open(place)


async def the_end_of_the_others(url):
    """Wait until the server has noticed that a writer is dead: what it had been sent may still be at work."""
    import psycopg  # noqa: PLC0415  (an extra)

    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while await (await connection.execute(others)).fetchone() != (0,):  # noqa: ASYNC110  (a server sets no event)
            await asyncio.sleep(0.01)


KEY = "user.k"


def texts_of(step):
    """What a step adds, and what the second of them becomes."""
    return f"First {step} of town{step}.", f"Second {step} of town{step}.", f"Third {step} of town{step}."


def replaces_keys(memory):
    return can(memory, "update") and can(memory, "add.key")


async def write(folder, done, acknowledge):
    """Write until killed: two texts a step, then the second anew, and a key; every third step forgets the first one."""
    entry, memory = await reopen(folder)
    for later in count():
        for owner in OWNERS:
            step = done[owner] + later
            first, second, third = texts_of(step)
            scope = Scope(user=owner, session=f"s{step:06}")
            items = [Item(text=text, kind=entry.kind) for text in (first, second)]
            receipt = await memory.memory.add(items, scope)
            one, other = (item.id for item in receipt.items)
            if can(memory, "update"):
                await memory.update(other, third, owner)
            if replaces_keys(memory):
                await memory.add(f"Key {step}.", owner, key=KEY, session="k")
            if step % 3 == 2:
                await memory.forget(one, owner)
                await entry.also(memory, owner)
            acknowledge(owner, step)


async def verify(folder, done):
    """Compare all texts with what was acknowledged; of the step under way there may be a part, but none of a batch.

    That part is deleted, for the next writer begins the step anew.
    """
    entry, memory = await reopen(folder)
    await memory.settle()
    changed = 2 if can(memory, "update") else 1
    for owner, steps in done.items():
        first, second, third = texts_of(steps)
        every = [hit.text for hit in await memory.list(owner) if entry.kind in (None, hit.kind)]  # no summaries
        found = [text for text in every if not text.startswith("Key ")]
        under_way = {text for text in found if text in (first, second, third)}
        kept = {texts_of(step)[place] for step in range(steps) for place in (0, changed) if place or step % 3 != 2}
        assert Counter(text for text in found if text not in under_way) == Counter(kept), owner
        assert len(under_way & {second, third}) <= 1
        if can(memory, "add.batch_atomic") and steps % 3 != 2:
            assert len(under_way) in (0, 2), (owner, under_way)
        if replaces_keys(memory):
            keys = [text for text in every if text.startswith("Key ")]
            assert keys in [[f"Key {one}."] if one >= 0 else [] for one in (steps - 1, steps)], owner
            of_key = await memory.memory.get(Ref(key=KEY), Scope(user=owner, session="k"))
            assert [of_key.text] == keys if keys else of_key is None
        await entry.sound(memory, owner)
        for text in found[-3:]:
            assert (await memory.search(text, owner))[0].text == text, owner
        for hit in await memory.list(owner):
            if hit.text in under_way:
                await memory.delete(hit.id, owner)
    await memory.close()


@pytest.mark.doses("kills", 2, 100)
@pytest.mark.parametrize("name", [name for name, one in MEMORIES.items() if one.engine != "chroma"], indirect=True)
def test_nothing_acknowledged_is_lost_by_a_kill_and_nothing_forgotten_is_back(
    kill_writers, tmp_path, name, place, kills
):
    # T-16
    (tmp_path / NAME).write_text(name)
    (tmp_path / PLACE).write_text(str(place))
    kill_writers(__file__, tmp_path, kills)
