from __future__ import annotations

import numpy as np
import pytest

from memstory_reference.adapters.chat_models.scripted_chat import ScriptedChat
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.faults import FaultyChat, FaultyEmbedder, FaultyVectorStore
from memstory_reference.adapters.vectors.memory_index import InMemoryVectorStore
from memstory_reference.errors import UnavailableError
from memstory_reference.ports import ChatModelUnavailableError, EmbedderUnavailableError, Message, Purpose, Record

ASK = [Message(role="user", content="Hello")]


@pytest.fixture
def embedder():
    return FaultyEmbedder(FixedVectors({"a": [1.0, 0.0], "b": [0.6, 0.8]}), slow_seconds=0.001)


@pytest.fixture
def chat():
    return FaultyChat(ScriptedChat([{"reply": "fine"}]), slow_seconds=0.001)


@pytest.fixture
async def store():
    store = FaultyVectorStore(InMemoryVectorStore(model="fixed"), slow_seconds=0.001)
    yield store
    await store.close()


async def test_embedder_that_is_ok_or_slow_answers_right(embedder):
    for mode in ("ok", "slow"):
        embedder.mode = mode
        assert np.allclose(await embedder.embed(["b"], Purpose.DOCUMENT), [[0.6, 0.8]])


async def test_embedder_that_is_down_is_unavailable_until_it_is_up_again(embedder):
    embedder.mode = "down"
    with pytest.raises(EmbedderUnavailableError):
        await embedder.embed(["a"], Purpose.QUERY)
    embedder.mode = "ok"
    assert len(await embedder.embed(["a"], Purpose.QUERY)) == 1


async def test_garbage_of_the_embedder_tells_no_texts_apart_and_has_length_one(embedder):
    embedder.mode = "garbage"
    vectors = await embedder.embed(["a", "b"], Purpose.DOCUMENT)
    assert np.array_equal(vectors[0], vectors[1])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


async def test_chat_behaves_as_its_switch_says(chat):
    for mode in ("ok", "slow"):
        chat.mode = mode
        assert (await chat.chat(ASK)).content == "fine"
    chat.mode = "garbage"
    assert (await chat.chat(ASK)).content != "fine"
    chat.mode = "down"
    with pytest.raises(ChatModelUnavailableError):
        await chat.chat(ASK)


async def test_store_that_is_down_fails_in_every_operation_of_an_open_index(store):
    index = await store.index("memories", "ann")
    await index.upsert([Record(id="a", text="a", vector=[1.0, 0.0])])
    store.mode = "down"
    vector = np.array([1, 0], dtype=np.float32)
    operations = (
        lambda: index.upsert([]),
        lambda: index.get(["a"]),
        lambda: index.query(vector, 1),
        index.list,
        lambda: index.delete(["a"]),
        index.count,
        lambda: store.index("memories", "bob"),
        lambda: store.owners("memories"),
    )
    for operation in operations:
        with pytest.raises(UnavailableError):
            await operation()
    store.mode = "ok"
    assert [record.id for record in await index.get(["a"])] == ["a"]


async def test_garbage_of_the_store_finds_nothing(store):
    index = await store.index("memories", "ann")
    await index.upsert([Record(id="a", text="a", vector=[1.0, 0.0])])
    vector = np.array([1, 0], dtype=np.float32)
    assert len(await index.query(vector, 1)) == 1
    store.mode = "garbage"
    assert not await index.query(vector, 1)
