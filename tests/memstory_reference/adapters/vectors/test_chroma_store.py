import socket

import chromadb
import pytest
from chromadb.config import Settings

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.chroma_store import (
    check_space,
    collection_name,
    make_collection,
    open_chroma_folder,
    open_chroma_server,
)
from memstory_reference.errors import InputError, StoreConflictError


def test_collection_of_another_space_is_refused_even_if_ours_is_asked_for(tmp_path):
    # LF-11, X-3
    client = chromadb.PersistentClient(str(tmp_path), settings=Settings(anonymized_telemetry=False))
    stamp = {"memstory:collection": "memory", "memstory:owner": "ana"}
    client.create_collection("theirs", metadata=stamp, embedding_function=None)
    with pytest.raises(StoreConflictError, match=r"here: .* made by something else .space 'l2', expected 'cosine'"):
        check_space(make_collection(client, "theirs", stamp), "here")
    check_space(make_collection(client, "ours", stamp), "here")
    client.close()


@pytest.mark.parametrize("name", ["", "a", "-ab", "a..b", "a b", "x" * 80, None, {"$ne": ""}], ids=repr)
def test_collection_name_that_chroma_would_refuse_is_refused_first(name):
    with pytest.raises(InputError, match="collection"):
        collection_name(name, "ana")


def test_two_owners_never_share_a_name():
    assert collection_name("memory", "a") != collection_name("memory", "b")
    assert collection_name("memory.a", "b") != collection_name("memory", "a.b")


async def test_server_that_does_not_answer_is_one_clear_error():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    with pytest.raises(UnavailableError, match=f"http://127.0.0.1:{port} does not answer. Start it with 'chroma run"):
        await open_chroma_server("127.0.0.1", port, model="fixed")


async def test_a_damaged_folder_is_one_clear_error_each_time_and_opens_once_it_is_restored(tmp_path):
    file = tmp_path / "data/chroma.sqlite3"
    file.parent.mkdir()
    file.write_bytes(b"no database" * 100)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="not a database"):
            await open_chroma_folder(tmp_path, file.parent, model="m")
    file.unlink()
    await (await open_chroma_folder(tmp_path, file.parent, model="m")).close()
