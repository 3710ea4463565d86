"""Folders that commit ce761bf wrote, before the six had one interface: each opens with all that was in it.

`old_folders/write.sh` made them by the commands of that commit; beside each folder is what it exported at the end.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from memstory.contract.target import Scope
from memstory_reference import open_memory_async
from memstory_reference.adapters.embedding.fixed_vectors import RandomVectors
from memstory_reference.cli import main
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.embedders import MINILM
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.library import AsyncMemory

pytestmark = pytest.mark.usefixtures("minilm_weights")
HERE = Path(__file__).with_name("old_folders")
PEOPLE = ("zoë", "bob")
NEW = "I moved to Lisbon in May."
LIVE = "Where do I live?"


@dataclass(frozen=True, kw_only=True)
class Old:
    """`forgotten` was forgotten; `questions` ask for a text of each person's that has the words."""

    system: str
    forgotten: str = "4471 B"
    questions: tuple = ((LIVE, "Kraków"), (LIVE, "Oslo"))
    takeover: str | tuple[str, ...] = ""
    files: int = 1


OLD = {
    "topics": Old(system="topics"),
    "topics-indexed": Old(
        system="topics", takeover="chroma is deleted: an index of the rows that are in vectors.sqlite3"
    ),
    "topics-server": Old(system="topics"),
    "manager": Old(system="manager"),
    "pipeline": Old(system="pipeline"),
    "observations": Old(
        system="observations",
        questions=(("Find cafés near Łódź", "menu lists 12 dishes"), ("Plan the trip to Bergen", "trip takes 7 hours")),
        takeover="observations.sqlite3: taken over from an earlier version of memstory (schema 1, now 3)",
    ),
    "layers": Old(system="layers", forgotten="chess"),
    "layers-postgres": Old(
        system="layers",
        forgotten="chess",
        takeover=(
            "the schema 'layers': taken over from an earlier version of memstory (4, now 6)",
            "the schema 'layers_audit': taken over from an earlier version of memstory (1, now 2)",
            "the schema 'layers_feedback': taken over from an earlier version of memstory (1, now 2)",
        ),
        files=3,
    ),
    "turns": Old(
        system="turns", takeover=".sqlite3: taken over from an earlier version of memstory (schema 2, now 3)", files=2
    ),
    "turns-postgres": Old(
        system="turns", takeover="the schema 'turns': taken over from an earlier version of memstory (1, now 4)"
    ),
}


def unpacked(name, folder):
    with tarfile.open(HERE / f"{name}.tar.gz") as file:
        file.extractall(folder, filter="data")
    return folder / name


def restored(url, name, folder, more=""):
    """Put the schemas into the database, with what `more` says, at once; return the URL of the first."""
    import psycopg  # noqa: PLC0415  (an extra)

    schema = name.removesuffix("-postgres")
    dump = (unpacked(name, folder) / "dump.sql").read_text("utf-8")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        connection.execute(dump)
        connection.execute(more)
    return f"{url}{'&' if '?' in url else '?'}schema={schema}"


@pytest.fixture
def served():
    """Return what runs a Chroma server on a folder and says where it answers."""
    from memstory_tests_waiting import wait_until  # noqa: PLC0415  (the writers that are killed do not have it)

    servers = []

    def serve(folder):
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            port = chosen.getsockname()[1]
        command = [Path(sys.executable).parent / "chroma", "run", "--path", folder, "--host", "127.0.0.1"]
        command += ["--port", str(port)]
        servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))  # noqa: S603
        wait_until(lambda: answers(port), seconds=60)
        return f"127.0.0.1:{port}"

    yield serve
    for server in servers:
        server.kill()
        server.wait(10)


def answers(port):
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=OLD)
def name(request):
    return request.param


@pytest.fixture
def old(name):
    return OLD[name]


@pytest.fixture
def settings(request, name, old, tmp_path):
    """What the memory is opened with: the setting of its place, or its server."""
    place = SYSTEMS[old.system].place
    if name.endswith("-postgres"):
        return {place: restored(request.getfixturevalue("postgres_database"), name, tmp_path)}
    folder = unpacked(name, tmp_path)
    if name.endswith("-server"):
        return {place: str(tmp_path / "unused"), "chroma_server": request.getfixturevalue("served")(folder)}
    return {place: str(folder)}


@pytest.fixture
def exports(name):
    """What each person had in the end, by id."""
    with tarfile.open(HERE / f"{name}.tar.gz") as file:
        of = {one: next(path for path in file.getnames() if path.startswith(f"{name}.{one}.")) for one in PEOPLE}
        return {one: exported(file.extractfile(path).read().decode()) for one, path in of.items()}


def exported(text):
    rows = json.loads(text) if text.startswith(("[", "{\n")) else lines_of(text)
    rows = rows["records"] if isinstance(rows, dict) else rows
    return {row["id"]: plain(row) for row in rows if is_kept(row)}


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


def is_kept(row):
    """Say whether it was active, and for more than the day that the manager's seed gives conversations."""
    is_active = row.get("standing", "active") == "active" and not row.get("replaced_by")
    return is_active and row.get("kind") != "conversation"


NAMES = {"topic": "key", "narrative": "text", "timestamp": "created_at", "final_score": "score"}
"""What an export calls another name since."""


def plain(row):
    """Return the values of an exported row by today's names, without those that say nothing."""
    flat = {NAMES.get(key, key): value for key, value in (row | row.get("metadata", {})).items()}
    return {key: value for key, value in flat.items() if value not in (None, []) and key not in ("metadata", "owner")}


async def test_by_the_library_all_is_there_the_forgotten_is_not_and_one_can_search_and_add(
    old, settings, exports, caplog
):
    for owner, (question, words) in zip(PEOPLE, old.questions, strict=True):
        async with open_memory_async(old.system, owner=owner, **settings) as memory:
            here = {hit.id: hit.text for hit in await memory.list()}
            assert exports[owner].keys() <= here.keys()
            texts = {one: row.get("text", here[one]) for one, row in exports[owner].items()}
            assert texts.items() <= here.items()
            assert not any(old.forgotten in text for text in here.values())
            assert not any(old.forgotten in hit.text for hit in await memory.search(old.forgotten))
            assert any(words in hit.text for hit in await memory.search(question, limit=5))
            await memory.add(NEW)
    assert [
        one.getMessage().endswith(old.takeover) for one in caplog.records if one.name.startswith("memstory_ref")
    ] == [True] * old.files * bool(old.takeover)
    for owner, other in (PEOPLE, PEOPLE[::-1]):
        async with open_memory_async(old.system, owner=owner, **settings) as memory:
            (new,) = {hit.id for hit in await memory.search(LIVE, limit=5) if "Lisbon" in hit.text}
            assert await memory.delete(new)
            assert exports[other].keys() & {hit.id for hit in await memory.list()} == set()


def test_by_the_commands_what_is_exported_has_all_that_was_exported(old, settings, exports, tmp_path, capsys):
    file = tmp_path / "settings.yaml"
    file.write_text(json.dumps({"memory": settings} if old.system == "manager" else settings))  # JSON is YAML
    for owner in PEOPLE:
        words = ["--system", old.system, "--settings", str(file)]
        words += ["--user-id" if old.system == "layers" else "--owner", owner]
        assert main(["memory", "export", *words]) == 0
        here = {row["id"]: plain(row) for row in lines_of(capsys.readouterr().out)}
        assert exports[owner].keys() <= here.keys()
        assert [one for one, row in exports[owner].items() if not row.items() <= here[one].items()] == []
        assert main(["memory", "list", *words, "--json"]) == 0
        listed = {row["id"] for row in json.loads(capsys.readouterr().out)}
        assert exports[owner].keys() <= listed


@pytest.mark.parametrize(("name", "file"), [("pipeline", "pipeline.sqlite3"), ("layers", "memory.sqlite3")])
async def test_an_owner_of_a_folder_without_versions_gets_one_so_that_vectors_are_read_once(name, file, tmp_path):
    folder = unpacked(name, tmp_path)
    for _ in range(2):
        await (await opened(name, folder)).close()
        with closing(sqlite3.connect(folder / file)) as database:
            versions = dict(database.execute("SELECT owner, version FROM versions"))
        assert {one.rpartition(":")[2] for one in versions} >= set(PEOPLE)
        assert len(set(versions.values())) == len(versions)


async def test_of_layers_the_logs_are_read_an_open_session_is_ended_and_the_archive_is_there(tmp_path):
    async with open_memory_async("layers", unpacked("layers", tmp_path), owner="zoë") as memory:
        zoe = Scope(user="zoë")
        said = await memory.memory.inspect("feedback", {}, zoe)
        assert [(one["label"], one["comment"]) for one in said] == [("helpful", "très bien"), ("unhelpful", "")]
        assert len(await memory.memory.inspect("audit", {}, zoe)) == 1
        assert any("nurse" in one["text"] for one in await memory.memory.inspect("shelved", {}, zoe))
        await memory.settle()
        assert any("Łukasz" in hit.text for hit in await memory.list())


# --- A takeover that is killed in its middle goes on, and nothing is lost.

OWNERS = ("store",)
"""Of the steps, by the words of `killing.py`."""

ROWS = 300
PLACE = "place"
MORE_OBSERVATIONS = f"""
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS})
    INSERT INTO observations SELECT NULL, owner, 'more-' || n, 'Row ' || n, 'Number ' || n || '.', facts, 'Row ' || n,
        task_type, final_score, rating, timestamp, sources, vector FROM observations, numbers WHERE id = 'run-1'
"""  # noqa: S608
MORE_TURNS = f"""
    INSERT INTO turns.turns (owner, id, kind, noted_at, text, metadata, stems, words, vector)
    SELECT owner, 'more-' || n, 'note', noted_at, 'Number ' || n || '.', '{{}}', repeat('tea ', 131), 131, vector
        FROM turns.turns, generate_series(1, {ROWS}) AS n WHERE key = 'k1'
"""  # noqa: S608


def old_store(folder, step):
    """Make an old store of many rows, whole or not at all; return its place."""
    url, work = (folder / PLACE).read_text(), folder / f"work-{os.getpid()}-{step}"
    if url:
        return restored(url, "turns-postgres", work, MORE_TURNS)
    made = unpacked("observations", work)
    with closing(sqlite3.connect(made / "observations.sqlite3")) as file, file:
        file.execute(MORE_OBSERVATIONS)
    made.rename(folder / f"old-{step}")
    return folder / f"old-{step}"


def place_of(folder, step):
    url = (folder / PLACE).read_text()
    return f"{url}{'&' if '?' in url else '?'}schema=turns" if url else folder / f"old-{step}"


def many(folder):
    return OLD["turns-postgres" if (folder / PLACE).read_text() else "observations"]


class QuickVectors(RandomVectors):
    """By the name of the model that the stores have: to load that takes longer than to take them over."""

    model = MINILM


async def opened(system, place):
    given = {SYSTEMS[system].place: str(place)}
    settings = SYSTEMS[system].settings(None, given, "test")
    return AsyncMemory(memory=await SYSTEMS[system].open(settings, MemoryPorts(embedder=QuickVectors())))


async def write(folder, done, acknowledge):
    """Take over one old store after another, until killed."""
    for step in count(done["store"]):
        place = old_store(folder, step)
        acknowledge("store", step)
        await (await opened(many(folder).system, place)).close()


async def verify(folder, done):
    """Open the store whose takeover was killed: all rows are there, and found by their words."""
    if not done["store"]:
        return
    memory = await opened(many(folder).system, place_of(folder, done["store"] - 1))
    here = {hit.id for hit in await memory.list("zoë")}
    assert {f"more-{number}" for number in range(1, ROWS + 1)} < here
    assert "Number 77." in {hit.text for hit in await memory.search("Row 77", "zoë", ROWS)}
    await memory.close()


@pytest.mark.doses("kills", 2, 100)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_takeover_that_is_killed_goes_on_and_loses_nothing(engine, request, kill_writers, tmp_path, kills):
    url = request.getfixturevalue("postgres_database") if engine == "postgres" else ""
    (tmp_path / PLACE).write_text(url)
    kill_writers(__file__, tmp_path, kills)
