"""The real client against a server that answers as Ollama does."""

from __future__ import annotations

import socket

import pytest

from memstory.contract.models import ChatModelUnavailableError, ChatRequest, Message, ToolRequest
from memstory.contract.values import ToolSchema
from memstory.models.ollama_chat import OllamaChat

MODEL = "qwen3:4b"
ASK = [Message(role="system", content="Be short."), Message(role="user", content="What language do I prefer?")]
RECALL = ToolSchema(
    name="recall_topic",
    description="Look up a standing fact.",
    parameters={
        "type": "object",
        "properties": {"topic": {"type": "string", "description": "Key."}},
        "required": ["topic"],
    },
)


@pytest.fixture
def chat(ollama_server):
    return OllamaChat(MODEL, ollama_server.url, timeout_seconds=5)


async def test_streamed_pieces_become_one_answer(chat, ollama_server):
    ollama_server.replies = [{"content": "You prefer Elixir.", "thinking": "I know that."}]
    reply = await chat.chat(ChatRequest(ASK))
    assert (reply.content, reply.thinking, list(reply.tool_requests)) == ("You prefer Elixir.", "I know that.", [])


async def test_pieces_are_reported_as_they_come(ollama_server):
    pieces: list[str] = []
    chat = OllamaChat(MODEL, ollama_server.url, on_text=pieces.append)
    ollama_server.replies = [{"content": "You prefer Elixir."}]
    await chat.chat(ChatRequest(ASK))
    assert len(pieces) > 1
    assert "".join(pieces) == "You prefer Elixir."


async def test_tool_call_becomes_a_request(chat, ollama_server, ollama_fake):
    ollama_server.replies = [ollama_fake.tool_call("recall_topic", topic="user.language_preference")]
    reply = await chat.chat(ChatRequest(ASK, [RECALL]))
    assert list(reply.tool_requests) == [
        ToolRequest(name="recall_topic", arguments={"topic": "user.language_preference"})
    ]
    (body,) = ollama_server.bodies("/api/chat")
    assert body["tools"][0]["function"]["name"] == "recall_topic"
    assert body["tools"][0]["function"]["parameters"]["required"] == ["topic"]


async def test_tool_result_goes_back_under_the_tools_name(chat, ollama_server):
    request = ToolRequest(name="recall_topic", arguments={"topic": "user.name"})
    await chat.chat(
        ChatRequest(
            [
                *ASK,
                Message(role="assistant", content="", tool_requests=[request]),
                Message(role="tool", content="[Memory: user.name] Ana", tool="recall_topic"),
            ],
            [RECALL],
        )
    )
    (body,) = ollama_server.bodies("/api/chat")
    assert body["messages"][2]["tool_calls"][0]["function"] == {
        "name": "recall_topic",
        "arguments": {"topic": "user.name"},
    }
    assert body["messages"][3]["tool_name"] == "recall_topic"


async def test_temperature_and_schema_reach_the_server(chat, ollama_server):
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    await chat.chat(ChatRequest(ASK, temperature=0.0, response_schema=schema))
    (body,) = ollama_server.bodies("/api/chat")
    assert body["options"] == {"temperature": 0.0}
    assert body["format"] == schema
    assert body["stream"] is True


async def test_missing_model_says_how_to_get_it(ollama_server):
    with pytest.raises(ChatModelUnavailableError, match="ollama pull gemma9:1b"):
        await OllamaChat("gemma9:1b", ollama_server.url).chat(ChatRequest(ASK))


async def test_model_without_tools_names_one_that_has_them(ollama_server):
    with pytest.raises(ChatModelUnavailableError, match=r"does not support tools.*qwen3:4b"):
        await OllamaChat("gemma3:4b", ollama_server.url).chat(ChatRequest(ASK, [RECALL]))


async def test_embedding_model_is_told_from_a_chat_model(ollama_server):
    with pytest.raises(ChatModelUnavailableError, match="makes embeddings"):
        await OllamaChat("nomic-embed-text", ollama_server.url).chat(ChatRequest(ASK))


async def test_no_server_says_how_to_start_it():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ChatModelUnavailableError, match="ollama serve"):
        await OllamaChat(MODEL, url).chat(ChatRequest(ASK))


async def test_error_in_the_middle_of_a_stream_is_no_answer(chat, ollama_server):
    ollama_server.stream_error = "an error was encountered while running the model"
    with pytest.raises(ChatModelUnavailableError, match=r"broke off.*encountered while running"):
        await chat.chat(ChatRequest(ASK))


async def test_half_an_answer_is_no_answer(chat, ollama_server):
    ollama_server.cut_stream = True
    with pytest.raises(ChatModelUnavailableError, match=r"broke off the answer of qwen3:4b after \d+ characters"):
        await chat.chat(ChatRequest(ASK))


async def test_silent_server_is_waited_for_only_so_long(ollama_server):
    ollama_server.delay_seconds = 30
    with pytest.raises(ChatModelUnavailableError, match=r"gave no answer and was silent for 0\.2 s.*ollama ps"):
        await OllamaChat(MODEL, ollama_server.url, timeout_seconds=0.2).chat(ChatRequest(ASK))


async def test_slow_answer_is_awaited_as_long_as_it_goes_on(ollama_server):
    ollama_server.delay_seconds = 0.4
    ollama_server.replies = [{"content": "You prefer Elixir.", "thinking": "Hm."}]
    reply = await OllamaChat(MODEL, ollama_server.url, timeout_seconds=1.2).chat(ChatRequest(ASK))
    assert reply.content == "You prefer Elixir."


async def test_broken_server_shows_its_words_and_status(chat, ollama_server):
    ollama_server.fail = (500, "llama runner process has terminated")
    with pytest.raises(ChatModelUnavailableError, match=r"runner process has terminated \(status 500\)"):
        await chat.chat(ChatRequest(ASK))
