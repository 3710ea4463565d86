import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.composition.chat_models import make_chat
from memstory_reference.composition.embedders import make_embedder
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.composition.vector_stores import open_store
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.system_memory import SYSTEM_NAMES

HOST = "http://127.0.0.1:1"


@pytest.mark.parametrize("name", ["word2vec", "ollama:", "", "MINILM"])
def test_an_embedder_that_nobody_knows_is_refused_with_those_that_there_are(name):
    with pytest.raises(InputError, match="allowed: all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME"):
        make_embedder(name, ollama_host=HOST)


@pytest.mark.parametrize("name", ["eliza", "ollama:", ""])
def test_a_chat_model_that_nobody_knows_is_refused_with_those_that_there_are(name):
    with pytest.raises(InputError, match="allowed: offline, ollama:NAME"):
        make_chat(name, ollama_host=HOST)


@pytest.mark.parametrize(("name", "model"), [("nomic-embed-text", "nomic-embed-text"), ("ollama:some:7b", "some:7b")])
def test_an_ollama_embedder_is_made_under_its_models_name(name, model, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path))
    assert make_embedder(name, ollama_host=HOST).model == model


def test_the_offline_model_names_itself_a_stand_in():
    assert "stand-in" in make_chat("offline", ollama_host=HOST).name


async def test_a_chroma_server_that_does_not_answer_is_said_to_be_unavailable(tmp_path):
    with pytest.raises(UnavailableError, match="chroma run"):
        await open_store(tmp_path, FixedVectors({"a": [1, 0]}), server="127.0.0.1:1")


async def test_a_folder_in_a_format_that_is_not_read_any_more_is_refused_and_stays_as_it_was(tmp_path):
    (tmp_path / "chroma.sqlite3").write_bytes(b"rows")
    for engine in ("sqlite", "chroma"):
        with pytest.raises(StoreConflictError, match="not read any more"):
            await open_store(tmp_path, FixedVectors({"a": [1, 0]}), engine=engine)
    assert [one.name for one in tmp_path.iterdir()] == ["chroma.sqlite3"]


def test_the_names_that_help_and_targets_list_are_those_of_the_memories():
    assert tuple(SYSTEMS) == SYSTEM_NAMES
