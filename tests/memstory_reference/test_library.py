"""The six memories as a library: a stranger's first lines, with and without await, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from memstory.contract.errors import NotSupported
from memstory_reference import open_memory, open_memory_async
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.errors import InputError, StoreConflictError

pytestmark = pytest.mark.usefixtures("minilm_weights")
SAID = "I moved to Oslo in May."


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_was_added_is_found_when_it_is_opened_again_and_by_nobody_else(system, tmp_path):
    with open_memory(system, tmp_path, owner="ana") as memory:
        (identifier,) = memory.add(SAID)
        memory.settle()
    with open_memory(system, tmp_path, owner="ana") as memory:
        assert "Oslo" in memory.search("Where do I live?")[0].text
        assert "Oslo" in memory.get(identifier).text
        assert memory.search("Where do I live?", user="bob") == []
        assert memory.delete(identifier) is True
        assert memory.list() == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_place_in_the_home_folder_is_found_there(system, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with open_memory(system, "~/mine", embedding_model="words") as memory:
        memory.add(SAID)
        assert (tmp_path / "home/mine").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_vectors_of_a_persons_store_are_not_in_the_cache_of_the_machine(system, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path / "cache"))
    with open_memory(system, tmp_path / "store", owner="ana") as memory:
        memory.add(SAID)
        memory.search("Where do I live?")
    assert [path for path in (tmp_path / "cache").rglob("*") if "embeddings" in path.name] == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_memory_has_tools_for_a_model_of_ones_own(system, tmp_path):
    with open_memory(system, tmp_path) as memory:
        tools = memory.tools()
        assert all(tool.parameters["type"] == "object" for tool in tools)
        wrong = memory.call_tool(tools[0].name, {})
        assert wrong.error
        assert (
            "there is no tool" in memory.call_tool("dance", {}).error or "tool" in memory.call_tool("dance", {}).error
        )


async def test_the_same_is_awaited(tmp_path):
    async with open_memory_async("turns", tmp_path, owner="ana") as memory:
        await memory.add(SAID)
        assert (await memory.search("Where do I live?", limit=1))[0].text == SAID
        assert "Oslo" in await memory.context("Where do I live?")
        await memory.say("My sister is Ilse.")
        assert "Ilse" in await memory.say("Who is my sister?")


def test_forgetting_takes_what_repeats_it_and_deleting_does_not(tmp_path):
    with open_memory("turns", tmp_path) as memory:
        first, second = memory.add(SAID), memory.add(SAID.upper())
        assert memory.delete(*first) is True
        assert [hit.id for hit in memory.list()] == second
        memory.add(SAID)
        assert len(memory.forget(*second)) >= 1


def test_settings_are_the_memorys_own(tmp_path):
    with open_memory("turns", tmp_path, top_k=1) as memory:
        for text in ("I prefer tabs.", "My cat is called Tom.", SAID):
            memory.add(text)
        assert len(memory.search("cat Oslo tabs")) == 1


@pytest.mark.parametrize(
    ("system", "options", "said"),
    [
        ("tuns", {}, "Did you mean 'turns'?"),
        ("turns", {"topk": 3}, "open_memory: unknown setting 'topk'. Did you mean 'top_k'?"),
        ("turns", {"owner": " "}, "owner"),
        ("manager", {"embedding_model": "none"}, "none"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_words_and_leaves_no_thread(system, options, said, tmp_path):
    import threading  # noqa: PLC0415

    before = threading.active_count()
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        open_memory(system, tmp_path / "store", **options)
    assert threading.active_count() == before


@pytest.mark.parametrize("system", SYSTEMS)
def test_who_names_no_owner_leaves_the_memory_closed(system, tmp_path):
    with pytest.raises(InputError, match="owner is blank"):
        open_memory(system, tmp_path / "store", owner=" ")
    assert not (tmp_path / "store").exists()


def test_what_a_memory_cannot_do_and_what_it_does_not_take_are_told_apart(tmp_path):
    with open_memory("manager", tmp_path) as memory:
        with pytest.raises(NotSupported):
            memory.context("Where?")
        with pytest.raises(InputError, match="blank"):
            memory.add(" ")
        with pytest.raises(InputError, match="nothing is remembered"):
            memory.update("none", "text")
        with pytest.raises(StoreConflictError, match="in use"):
            open_memory("manager", tmp_path)


@pytest.mark.parametrize("system", SYSTEMS)
def test_who_deletes_or_reads_one_session_keeps_the_others(system, tmp_path):
    with open_memory(system, tmp_path, owner="ana") as memory:
        for session, text in (("work", SAID), ("home", "My boat is blue.")):
            memory.add(text, session=session, kind="conversation" if system == "manager" else None)
        if "scope.session" in SYSTEMS[system].memory.capabilities():
            memory.delete_all(session="work")
            assert [hit.text for hit in memory.list()] == ["My boat is blue."]
            return
        asked = (memory.delete_all, memory.list, partial(memory.search, "boat"))
        for ask in asked:
            with pytest.raises(NotSupported, match="does not keep its sessions apart"):
                ask(session="work")
        assert len(memory.list()) == len((SAID, "My boat is blue."))


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_wrong_with_a_call_is_an_input_error_and_speaks_of_a_memory(system, tmp_path):
    with open_memory(system, tmp_path) as memory:
        for ask in (memory.run, memory.inspect):
            with pytest.raises(NotSupported, match=r"^this memory has no (job|look) 'dance'; it has: \w"):
                ask("dance")
        with pytest.raises(InputError, match="status: unknown argument 'wrong'"):
            memory.inspect("status", wrong=1)
        job = next(one for one in ("purge", "compress", "cleanup", "export", "reindex") if _has_job(system, one))
        with pytest.raises(InputError, match=f"{job}: unknown argument 'wrong'"):
            memory.run(job, wrong=1)


def _has_job(system, job):
    return f"job.{job}" in SYSTEMS[system].memory.capabilities()


def test_a_closed_memory_says_so_and_closing_twice_is_nothing(tmp_path):
    memory = open_memory("turns", tmp_path)
    memory.close()
    memory.close()
    with pytest.raises(InputError, match="closed"):
        memory.add(SAID)


def test_an_import_of_the_package_needs_no_extra_and_loads_no_store():
    heavy = ("numpy", "chromadb", "onnxruntime", "tokenizers")
    code = f"import sys, memstory_reference; print([one for one in {heavy} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


def test_it_is_a_target_as_it_is(tmp_path, monkeypatch):
    Path(tmp_path / "notes.py").write_text(
        "from memstory_reference import OpenMemory, open_memory\n\n\n"
        'def turns(path) -> OpenMemory:\n    return open_memory("turns", path)\n',
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    command = [
        str(Path(sys.executable).with_name("memstory")),
        "run",
        "--bundled",
        "faults",
        "--target",
        "notes:turns",
        "-k",
        "FO8 or FO9",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout
    assert "Used: add(text, user" in done.stdout


@pytest.mark.parametrize("system", ["manager", "turns"])
async def test_a_turn_that_is_not_stored_says_so_beside_its_answer(system, tmp_path):
    async with open_memory_async(system, tmp_path, owner="ana", secrets="refuse") as memory:
        turn = await memory.turn("My card is 4111 1111 1111 1111.")
        assert await memory.list() == []
    assert turn.answer
    (note,) = turn.notes
    assert note.count("not stored") == 1
    assert "payment card" in note
    assert "4111" not in note


def test_a_turn_has_the_answer_that_say_returns_also_without_await(tmp_path):
    with open_memory("turns", tmp_path, owner="ana") as memory:
        memory.turn("My sister is Ilse.", session="monday")
        asked = "Who is my sister?"
        turn = memory.turn(asked, session="tuesday")
        assert (turn.answer, list(turn.notes)) == (memory.say(asked, session="wednesday"), [])
        assert "Ilse" in turn.answer
