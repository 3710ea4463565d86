"""Damaged files of the six memories: they answer with what is whole, or name the file and what to do."""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
from contextlib import closing
from random import Random

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import SetupError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.discovery import load_targets

SYSTEMS = ("layers", "manager", "observations", "pipeline", "topics", "turns")
FLIPS, TOLD = 20, 40

ANN, BOB = Scope(user="ann"), Scope(user="bob")
FILE_AND_ADVICE = re.compile(
    r"\S+\.(sqlite3|f32)\b.*([Rr]estore a backup|[Oo]pen (it|the store)|use another folder)", re.DOTALL
)


def told(scope, number):
    return Item(text=f"I like dish {number} of town{number}, says {scope.user}; " + f"word{number} " * 8)


async def opened(factory, folder):
    target = factory.target()
    await target.open(Environment(workspace=str(folder), owner=ANN.user, options={"embedder": "words"}), StoryClock())
    return target


@pytest.fixture(scope="module")
def factories():
    return load_targets(["reference"], {})


@pytest.fixture
async def filled(factories, tmp_path, system):
    """A closed memory of two users, one of whom had a text forgotten for good; and its factory."""
    (tmp_path / "filled").mkdir()
    target = await opened(factories[system], tmp_path / "filled")
    for scope in (ANN, BOB):
        receipt = await target.add([told(scope, number) for number in range(TOLD)], scope)
    await target.settle()
    await target.delete(Ref(id=receipt.items[-1].id, durable=True), BOB)
    await target.close()
    return tmp_path / "filled", factories[system]


def flip(content, random):
    for _ in range(FLIPS):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def overwrite(content, random):
    place = random.randrange(max(1, len(content) - 400))
    content[place : place + 400] = random.randbytes(min(400, len(content) - place))


def cut(content, random):
    del content[random.randrange(len(content)) :]


def fill(content, random):
    content[:] = random.choice([b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])


DAMAGES = (flip, overwrite, cut, fill)


def damage(folder, to, seed, number):
    """Copy a folder, with one of its files damaged; return how, and that file's name."""
    random = Random(f"{seed}-{number}")  # noqa: S311  (no secret)
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    file = random.choice(sorted(one for one in to.rglob("*") if one.suffix in (".sqlite3", ".f32")))
    content, kind = bytearray(file.read_bytes()), DAMAGES[number % len(DAMAGES)]
    kind(content, random)
    file.write_bytes(content)
    return f"{kind.__name__} {file.name}"


async def used(factory, folder):
    """Do what a user does; return what was said of what could not be done."""
    able, said = factory.capabilities({}), []

    async def attempt(call):
        try:
            return await call()
        except (TargetError, SetupError) as error:
            said.append(str(error))

    target = await attempt(lambda: opened(factory, folder))
    if target is None:
        return said
    question = Query(text="Which dish of town3 does ann like?")
    for capability, call in (
        ("list", lambda: target.list(ANN)),
        ("search", lambda: target.search(question, ANN)),
        ("context", lambda: target.context(question, ANN)),
        ("inspect.status", lambda: target.inspect("status", {}, ANN)),
        ("list", lambda: target.list(BOB)),
        ("search", lambda: target.search(question, BOB)),
        ("add", lambda: target.add([Item(text="A new thing, number 99.")], ANN)),
        ("delete.about", lambda: target.delete_about(["town4"], ANN)),
        ("delete.scope", lambda: target.delete(Ref(), ANN)),
        ("delete.scope", lambda: target.delete(Ref(), BOB)),
    ):
        if capability in able:
            await attempt(call)
    await attempt(target.settle)
    await attempt(target.close)
    return said


async def use_damaged(filled, folder, seed, folders):
    whole, factory = filled
    for number in range(folders):
        file = damage(whole, folder, seed, number)
        try:
            said = await used(factory, folder)
        except Exception as error:
            error.add_note(f"MEMSTORY_FUZZ_SEED={seed}, file {number}: {file}")
            raise
        unclear = [one for one in said if not FILE_AND_ADVICE.search(one)]
        assert not unclear, f"MEMSTORY_FUZZ_SEED={seed}, file {number}: {file}"


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


@pytest.mark.doses("folders", 8, 2_000)
@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_memory_with_a_damaged_file_answers_or_names_the_file_and_what_to_do(filled, tmp_path, seed, folders):
    await use_damaged(filled, tmp_path / "damaged", seed, folders)


def spoil(folder, text):
    """Make every cell that holds `text` unreadable, in all rows of all files; return how many."""
    cells = 0
    for file in folder.rglob("*.sqlite3"):
        with closing(sqlite3.connect(file)) as connection, connection:
            tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            virtual = [f"{name}_" for name, sql in tables if sql.startswith("CREATE VIRTUAL")]
            for name, sql in tables:
                if sql.startswith("CREATE VIRTUAL") or name.startswith(tuple(virtual)):
                    continue
                for _, column, *_ in connection.execute(f"PRAGMA table_info({name})").fetchall():
                    change = f"UPDATE {name} SET {column} = CAST(x'66ff' AS TEXT) WHERE instr({column}, ?)"  # noqa: S608
                    cells += connection.execute(change, (text,)).rowcount
    return cells


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_row_that_cannot_be_read_stops_itself_alone(filled):
    folder, factory = filled
    texts = [told(ANN, number).text.strip() for number in range(TOLD)]
    assert spoil(folder, texts.pop(3))
    target = await opened(factory, folder)
    assert sorted(hit.text.strip() for hit in await target.list(ANN)) == sorted(texts)
    assert await target.search(Query(text=texts[4]), ANN)
    assert len(await target.list(BOB)) == TOLD - 1
    status = await target.inspect("status", {}, ANN)
    assert max(status.get("unreadable", 0), len(status.get("damaged_ids", ())), status.get("damaged", 0)) == 1
    await target.delete(Ref(), ANN)
    assert await target.list(ANN) == []
    await target.add([Item(text="A new thing, number 99.")], ANN)
    assert [hit.text for hit in await target.list(ANN)] == ["A new thing, number 99."]
    assert len(await target.list(BOB)) == TOLD - 1
    await target.close()


def alter(folder, old, new):
    """Write another text over `old` wherever it stands, as long as it; return in how many cells."""
    cells = 0
    for file in folder.rglob("*.sqlite3"):
        with closing(sqlite3.connect(file)) as connection, connection:
            tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            for name in (name for name, sql in tables if "VIRTUAL" not in sql and not name.startswith("words_")):
                for _, column, *_ in connection.execute(f"PRAGMA table_info({name})").fetchall():
                    change = f"UPDATE {name} SET {column} = replace({column}, ?, ?) WHERE instr({column}, ?)"  # noqa: S608
                    cells += connection.execute(change, (old, new, old)).rowcount
    return cells


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_text_that_was_changed_into_another_is_not_given_as_a_memory(filled):
    folder, factory = filled
    assert alter(folder, "dish 3 of", "dish 8 of")
    target = await opened(factory, folder)
    given = [hit.text for hit in (*await target.list(ANN), *await target.search(Query(text="dish 8 of town3"), ANN))]
    assert given
    assert not [text for text in given if "dish 8 of town3" in text]
    status = await target.inspect("status", {}, ANN)
    assert max(status.get("unreadable", 0), len(status.get("damaged_ids", ())), status.get("damaged", 0)) == 1
    assert len(await target.list(BOB)) == TOLD - 2
    await target.close()


INDEXES = {
    "layers": ("layers/memory.sqlite3", "records", "by_age"),
    "pipeline": ("pipeline.sqlite3", "memories", "by_hash"),
}


@pytest.mark.parametrize("system", INDEXES)
async def test_rows_that_a_damaged_index_has_lost_are_counted(filled, system, caplog):
    folder, factory = filled
    place, table, index = INDEXES[system]
    with closing(sqlite3.connect(folder / place, isolation_level=None)) as connection:
        rows = connection.execute(f"SELECT * FROM {table} ORDER BY rowid LIMIT 3").fetchall()  # noqa: S608  (a test's own words)
        connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} ORDER BY rowid LIMIT 3)")  # noqa: S608
        kept = connection.execute("SELECT * FROM sqlite_master WHERE name = ?", (index,)).fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
    with closing(sqlite3.connect(folder / place, isolation_level=None)) as connection:
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)
    caplog.set_level(logging.WARNING)
    target = await opened(factory, folder)
    assert (await target.inspect("status", {}, ANN))["unreadable"] == 3
    assert "3 rows" in (await target.about())["unreadable"]
    assert [one for one in caplog.messages if place in one and f"some reads lack 3 rows of {table}" in one]
    await target.close()


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_whole_memory_has_nothing_that_cannot_be_read(filled):
    target = await opened(filled[1], filled[0])
    assert (await target.inspect("status", {}, ANN))["unreadable"] == 0
    assert "unreadable" not in await target.about()
    await target.close()
