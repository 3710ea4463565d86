"""The fake Ollama behaves as the real client expects: what it gets wrong, tests of adapters would not notice."""

from __future__ import annotations

from typing import Any

import httpx
import ollama
import pytest

TOOLS = [{"type": "function", "function": {"name": "memory_save", "parameters": {"type": "object", "properties": {}}}}]
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def client(ollama_server: Any):
    async with ollama.AsyncClient(host=ollama_server.url, timeout=5) as client:
        yield client


async def test_stream_arrives_in_parts_and_ends_with_counts(client):
    parts = [part async for part in await client.chat("qwen3:4b", HELLO, stream=True)]
    assert "".join(part.message.content or "" for part in parts) == "hello"
    assert len(parts) > 2
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == 3


@pytest.mark.parametrize("stream", [True, False])
async def test_tool_call_carries_its_arguments_as_an_object(client, ollama_server, ollama_fake, stream):
    ollama_server.replies = [ollama_fake.tool_call("memory_save", topic="user.language")]
    answer = await client.chat("qwen3:4b", HELLO, tools=TOOLS, stream=stream)
    messages = [part.message async for part in answer] if stream else [answer.message]
    calls = [call for message in messages for call in message.tool_calls or ()]
    assert [(call.function.name, dict(call.function.arguments)) for call in calls] == [
        ("memory_save", {"topic": "user.language"})
    ]


async def test_error_within_a_stream_has_no_status(client, ollama_server):
    ollama_server.stream_error = "an error was encountered while running the model"
    with pytest.raises(ollama.ResponseError, match="while running the model") as caught:
        [part async for part in await client.chat("qwen3:4b", HELLO, stream=True)]
    assert caught.value.status_code == -1


async def test_cut_stream_is_a_protocol_error(client, ollama_server):
    ollama_server.cut_stream = True
    with pytest.raises(httpx.RemoteProtocolError):
        [part async for part in await client.chat("qwen3:4b", HELLO, stream=True)]


@pytest.mark.parametrize(
    ("model", "tools", "status", "message"),
    [
        ("absent", [], 404, "model 'absent' not found"),
        ("nomic-embed-text", [], 400, '"nomic-embed-text" does not support chat'),
        ("gemma3:4b", TOOLS, 400, "gemma3:4b does not support tools"),
    ],
)
async def test_chat_that_cannot_be_is_refused_in_ollamas_words(client, model, tools, status, message):
    with pytest.raises(ollama.ResponseError, match=message) as caught:
        await client.chat(model, HELLO, tools=tools)
    assert caught.value.status_code == status


async def test_embed_of_a_missing_model_has_its_own_words(client):
    with pytest.raises(ollama.ResponseError, match='model "absent" not found, try pulling it first'):
        await client.embed("absent", "text")


async def test_lone_empty_text_is_answered_with_no_embedding(client):
    assert list((await client.embed("all-minilm", "")).embeddings) == []


async def test_models_are_listed_and_shown(client):
    names = [model.model for model in (await client.list()).models]
    assert "nomic-embed-text:latest" in names
    assert (await client.show("qwen3:4b")).capabilities == ["completion", "tools", "thinking"]
