"""A memory opens whole or not at all: what was opened for one that cannot be opened is closed at once."""

from pathlib import Path

import pytest

from memstory.contract.errors import MemstoryError
from memstory.contract.target import Scope
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.storage.tombstones import FILE, Tombstones

OPEN_FILES = Path("/proc/self/fd")


def left_open(folder):
    """Return the files of a folder that this process has open, where the system says it."""
    files = [one for one in OPEN_FILES.iterdir() if one.exists()] if OPEN_FILES.is_dir() else []
    return [one.resolve().name for one in files if one.resolve().is_relative_to(folder)]


@pytest.mark.parametrize("name", SYSTEMS)
async def test_a_memory_that_cannot_be_opened_leaves_nothing_open_and_its_folder_free(name, tmp_path):
    system = SYSTEMS[name]
    settings = system.settings(None, {system.place: str(tmp_path), "embedding_model": "words"}, "test")
    await (await system.open(settings)).close()
    (tmp_path / FILE).write_bytes(b"no database" * 100)
    # The error that is held holds what was opened: nothing is closed here by being collected.
    with pytest.raises(MemstoryError) as held:
        await system.open(settings)
    assert left_open(tmp_path) == []
    (tmp_path / FILE).unlink()
    await (await system.open(settings)).close()
    assert "forgotten" in str(held.value)


@pytest.mark.parametrize("name", SYSTEMS)
async def test_a_memory_that_cannot_be_made_of_what_was_opened_leaves_nothing_open(name, tmp_path, monkeypatch):
    system = SYSTEMS[name]
    settings = system.settings(None, {system.place: str(tmp_path), "embedding_model": "words"}, "test")
    buried = Tombstones(tmp_path / FILE)
    buried.bury("ana", ["My name is Ana."])
    buried.close()

    def fail(*_, **__):
        raise MemstoryError("it cannot be made")

    with monkeypatch.context() as broken:
        broken.setattr(system.memory, "__init__", fail)
        with pytest.raises(MemstoryError) as held:
            await system.open(settings)
        assert left_open(tmp_path) == []
    await (await system.open(settings)).close()
    assert "made" in str(held.value)


async def test_a_memory_with_rules_of_its_own_asks_the_stand_in_whose_calls_are_to_be_recorded(tmp_path):
    layers, tape = SYSTEMS["layers"], tmp_path / "tape.jsonl"
    chosen = {"store": str(tmp_path / "layers"), "embedding_model": "none", "chat": f"record:offline@{tape}"}
    memory = await layers.open(layers.settings(None, chosen, "test"))
    await memory.say("My name is Ana.", Scope(user="ana", session="first"))
    await memory.settle()
    await memory.close()
    assert "My name is Ana." in tape.read_text("utf-8")
