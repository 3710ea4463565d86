"""What happens to a memory over years, for all six alike: another model, a backup, a look without any model."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from memstory_reference import back_up_memory, open_memory, reindex_memory
from memstory_reference.cli import main
from memstory_reference.composition import embedders
from memstory_reference.errors import InputError, OtherModelError, StoreConflictError
from memstory_reference.ports import EmbedderUnavailableError
from memstory_reference.storage.reindexing import PARTS
from memstory_reference.system_memory import SYSTEM_NAMES

TEXTS = ("My boat is called Heron.", "I moved to Oslo in May.", "My sister Ilse keeps bees.")


@pytest.fixture(params=SYSTEM_NAMES)
def system(request):
    return request.param


@pytest.fixture
def folder(system, tmp_path):
    """A memory of two people that was made with vectors of words."""
    with opened(system, tmp_path / "store") as memory:
        for owner in ("ana", "bob"):
            for text in TEXTS:
                memory.add(text, owner)
        memory.settle()
    return tmp_path / "store"


def opened(system, folder, model="words"):
    return open_memory(system, folder, owner="ana", embedding_model=model)


def all_texts(memory, user=None):
    return sorted(hit.text for hit in memory.list(user))


def typed(capsys, *words):
    code = main([*map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def rows(folder):
    """Return all that the databases of a folder hold but vectors and the names of models."""
    found = {}
    for file in sorted(folder.rglob("*.sqlite3")):
        with closing(sqlite3.connect(file)) as database:
            found[file.name] = [line for line in database.iterdump() if "INSERT" in line and "X'" not in line]
    return {name: [one for one in lines if '"about"' not in one] for name, lines in found.items()}


def test_a_memory_that_another_model_made_is_listed_exported_and_looked_at_without_it(system, folder, capsys):
    of_ana = ("--system", system, "--store", folder, "--owner", "ana")
    code, out, err = typed(capsys, "memory", "list", *of_ana, "--json")
    assert (code, err) == (0, "")
    assert len(json.loads(out)) == len(TEXTS)
    assert len(typed(capsys, "memory", "export", *of_ana)[1].splitlines()) == len(TEXTS)
    assert typed(capsys, "memory", "status", *of_ana)[0] == 0
    code, _, err = typed(capsys, "memory", "search", "boat", *of_ana, "--embedder", "random")
    assert (code, err.count("\n")) == (1, 1)
    assert "memory reindex" in err


def test_texts_are_embedded_again_by_another_model_and_all_else_stays(system, folder, capsys):
    before = rows(folder)
    with opened(system, folder) as memory:
        texts, ids = all_texts(memory), sorted(hit.id for hit in memory.list())
    code, out, _ = typed(capsys, "memory", "reindex", "--system", system, "--store", folder, "--embedder", "random")
    assert (code, out) == (0, f"Embedded again: {2 * len(TEXTS)}.\n")
    with pytest.raises(OtherModelError, match="memory reindex"), opened(system, folder):
        pass
    with opened(system, folder, "random") as memory:
        assert (all_texts(memory), sorted(hit.id for hit in memory.list())) == (texts, ids)
        assert all_texts(memory, "bob") == texts
        memory.add("A new thing, number 99.")
    assert reindex_memory(system, folder, embedding_model="words") == 2 * len(TEXTS) + 1
    with opened(system, folder) as memory:
        assert "Heron" in memory.search("What is my boat called?")[0].text
        memory.delete(next(hit.id for hit in memory.list() if "99" in hit.text))
    held = {name: len(lines) for name, lines in before.items()}
    assert {name: len(lines) for name, lines in rows(folder).items()} == held


@pytest.mark.slow
@pytest.mark.parametrize("place", ["embed", "replace"])
def test_reindexing_that_is_killed_loses_nothing_and_is_done_again(system, folder, place):
    with opened(system, folder) as memory:
        texts = all_texts(memory)
    dying = f"""
import os, signal, pathlib
from memstory_reference import reindex_memory
from memstory_reference.adapters.embedding.fixed_vectors import RandomVectors
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
{"RandomVectors.embed = die" if place == "embed" else "pathlib.Path.replace = die"}
reindex_memory({system!r}, {str(folder)!r}, embedding_model="random")
"""
    killed = subprocess.run([sys.executable, "-c", dying], check=False)  # noqa: S603  (our own)
    assert killed.returncode == -signal.SIGKILL
    assert (folder / PARTS).exists()
    with opened(system, folder) as memory:
        assert all_texts(memory) == texts
        assert "Heron" in memory.search("What is my boat called?")[0].text
    assert not (folder / PARTS).exists()
    assert reindex_memory(system, folder, embedding_model="random") == 2 * len(TEXTS)


def test_a_model_that_fails_leaves_the_memory_as_it_was(system, folder, monkeypatch):
    class Down:
        model, dimension = "down", 8

        async def embed(self, texts, purpose):
            raise EmbedderUnavailableError("the embedder is down; start it")

    with monkeypatch.context() as patch:
        patch.setattr(embedders, "make_embedder", lambda *_, **__: Down())
        with pytest.raises(EmbedderUnavailableError):
            reindex_memory(system, folder)
    with opened(system, folder) as memory:
        assert "Heron" in memory.search("What is my boat called?")[0].text


def test_a_memory_that_is_open_is_not_reindexed_and_says_how_it_is_shared(system, folder):
    with opened(system, folder):
        with pytest.raises(StoreConflictError):
            reindex_memory(system, folder, embedding_model="random")
        with pytest.raises(StoreConflictError) as problem, opened(system, folder):
            pass
    assert all(way in str(problem.value) for way in ("serve http", "postgresql://"))


def test_a_memory_is_copied_while_it_is_written_and_the_copy_is_a_memory(system, folder, tmp_path, capsys):
    with opened(system, folder) as memory:
        memory.add("Written before the copy.")
        back_up_memory(system, folder, tmp_path / "copy")
        memory.add("Written after the copy.")
    with opened(system, tmp_path / "copy") as memory:
        assert all_texts(memory) == sorted([*TEXTS, "Written before the copy."])
        assert all_texts(memory, "bob") == sorted(TEXTS)
        assert "Heron" in memory.search("What is my boat called?")[0].text
    place = ("--system", system, "--store", tmp_path / "copy", "--output", tmp_path / "again")
    assert typed(capsys, "memory", "backup", *place) == (0, f"Copied to {tmp_path / 'again'}.\n", "")
    assert typed(capsys, "memory", "backup", *place)[0] == 1
    with opened(system, tmp_path / "again") as memory:
        assert len(all_texts(memory)) == len(TEXTS) + 1


WRITER = """
import sys
from memstory_reference import open_memory
with open_memory({system!r}, {folder!r}, owner="ana", embedding_model="words") as memory:
    for number in range(10_000):
        memory.add(f"Ship {{number}} lies in harbour {{number}} of the coast.")
        print(number, flush=True)
"""


@pytest.mark.slow
def test_copies_of_a_memory_that_another_process_writes_hold_what_it_had_acknowledged(system, tmp_path):
    code = WRITER.format(system=system, folder=str(tmp_path / "store"))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:  # noqa: S603
        try:
            for copy in range(5):
                acknowledged = [int(writer.stdout.readline()) for _ in range(5)]
                back_up_memory(system, tmp_path / "store", tmp_path / f"copy{copy}")
                with opened(system, tmp_path / f"copy{copy}") as memory:
                    held = {int(text.split()[1]) for text in all_texts(memory)}
                assert held >= set(range(acknowledged[-1] + 1))
                assert held == set(range(len(held)))
        finally:
            os.kill(writer.pid, signal.SIGKILL)


def test_what_is_exported_comes_back_equal_by_the_library(system, folder, tmp_path):
    with opened(system, folder) as memory:
        exported, texts = memory.export_rows(), all_texts(memory)
    with opened(system, tmp_path / "other") as memory:
        assert not memory.import_rows(exported)
        memory.settle()
        assert all_texts(memory) == texts
        again = memory.export_rows()
    kept = {"topics": {"id"}, "layers": {"id", "created_at", "updated_at", "session"}, "turns": {"id", "noted_at"}}
    own = kept.get(system, set())

    def comparable(rows):
        return sorted(json.dumps({name: one[name] for name in sorted(one.keys() - own)}) for one in rows)

    assert comparable(again) == comparable(exported)


def test_the_sources_of_a_run_are_exported_and_come_back(tmp_path):
    with open_memory("observations", tmp_path / "one", embedding_model="words") as memory:
        memory.run(
            "compress_and_store", task="Cafés near the port", output="One has a terrace.", sources=["page-1", "page-2"]
        )
        rows = memory.export_rows()
    with open_memory("observations", tmp_path / "two", embedding_model="words") as memory:
        assert memory.import_rows(rows) == []
        assert memory.export_rows() == rows
    assert rows[0]["metadata"]["sources"] == ["page-1", "page-2"]


@pytest.mark.parametrize(
    ("system", "earlier", "later"),
    [("layers", "I live in Oslo", "I live in Bergen"), ("pipeline", "I prefer Python", "I now prefer Rust")],
)
def test_a_later_word_replaces_the_earlier_which_does_not_return_when_the_later_is_forgotten(
    system, earlier, later, tmp_path, capsys
):
    """By the library, by a model's tool, and by the command."""
    for way in ("library", "tool", "command"):
        with opened(system, tmp_path / way) as memory:
            for text in (earlier, later):
                memory.say(f"{text}.")
            if system == "layers":
                memory.run("end")
            memory.settle()
            held = [hit for hit in memory.list() if hit.kind in ("semantic", "procedural")]
            assert [later in hit.text for hit in held] == [True]
            if way == "library":
                assert len(memory.forget(held[0].id)) >= 2
            if way == "tool":
                assert memory.call_tool("forget_memory", {"memory_id": held[0].id}).error is None
        if way == "command":
            of_ana = ("--system", system, "--owner", "ana", "--store", tmp_path / way)
            assert typed(capsys, "memory", "forget", held[0].id, "--yes", *of_ana)[0] == 0
        with opened(system, tmp_path / way) as memory:
            assert earlier not in " ".join(hit.text for hit in memory.list())


def test_an_operator_reads_the_crisis_log_and_the_opinions_of_everybody_or_of_one(tmp_path, capsys):
    with opened("layers", tmp_path / "store") as memory:
        for owner in ("ana", "bob"):
            memory.say("I want to kill myself.", owner)
            memory.run("feedback", owner, label="helpful", comment=f"says {owner}")
        memory.settle()
        assert [row["level"] for row in memory.inspect("audit")] == ["acute"]
    of_all = ("--system", "layers", "--store", tmp_path / "store", "--json")
    for name in ("audit", "feedback"):
        code, out, _ = typed(capsys, "memory", name, *of_all)
        assert (code, [row["owner"] for row in json.loads(out)]) == (0, ["user:ana", "user:bob"])
        assert [row["owner"] for row in json.loads(typed(capsys, "memory", name, *of_all, "--owner", "bob")[1])] == [
            "user:bob"
        ]
    assert "kill" not in typed(capsys, "memory", "audit", *of_all)[1]
    assert "says bob" in typed(capsys, "memory", "feedback", *of_all[:-1])[1]


@pytest.mark.parametrize("system", ["topics", "observations"])
def test_what_was_rated_is_listed_with_its_value(system, folder, capsys):
    of_ana = ("--system", system, "--store", folder, "--owner", "ana")
    with opened(system, folder) as memory:
        rated = next(hit.id for hit in memory.list() if "Heron" in hit.text)
    assert typed(capsys, "memory", "feedback", *of_ana) == (0, "Nothing is logged.\n", "")
    assert typed(capsys, "memory", "rate", rated, "0.5", *of_ana)[0] == 0
    (row,) = json.loads(typed(capsys, "memory", "feedback", *of_ana[:-2], "--json")[1])
    assert (row["owner"], row["id"], row["value"]) == ("ana", rated, 0.5)


@pytest.mark.parametrize("name", ["audit", "feedback", "migrate"])
def test_what_a_memory_lacks_is_said_in_one_line(name, folder, system, capsys, tmp_path):
    has = {"audit": ("layers",), "feedback": ("layers", "topics", "observations"), "migrate": ("manager",)}
    (tmp_path / "old.jsonl").write_text('{"id": "a", "content": "Ana likes tea.", "type": "dream"}\n', "utf-8")
    more = (tmp_path / "old.jsonl", "--embedder", "words") if name == "migrate" else ()
    code, _, err = typed(capsys, "memory", name, *more, "--system", system, "--store", folder, "--owner", "ana")
    if system in has[name]:
        assert ("dream" in err) == (name == "migrate")
        assert code == (name == "migrate")
    else:
        assert (code, err.count("\n")) == (1, 1), err
        assert name in err


@pytest.mark.parametrize("name", ["reindex", "backup"])
def test_what_is_in_a_database_or_is_not_there_is_said_in_one_line(capsys, tmp_path, name):
    more = ("--output", tmp_path / "copy") if name == "backup" else ()
    place = ("--system", "turns", "--store", "postgresql://u:secret@127.0.0.1/d")
    code, out, err = typed(capsys, "memory", name, *place, *more)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert ("pg_dump" if name == "backup" else "export") in err
    assert "secret" not in err
    code, _, err = typed(capsys, "memory", name, "--system", "turns", "--store", tmp_path / "nowhere", *more)
    assert (code, "no memory is stored here" in err) == (1, True)
    assert not (tmp_path / "nowhere").exists()


def test_a_library_is_told_what_is_wrong(tmp_path):
    with pytest.raises(InputError, match="no memory is stored here"):
        reindex_memory("turns", tmp_path / "nowhere")
