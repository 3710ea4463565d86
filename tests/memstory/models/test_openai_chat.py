"""The real client of OpenAI's protocol against a server that behaves, and misbehaves, as those do."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from memstory.contract.models import (
    ChatModelUnavailableError,
    ChatRequest,
    Message,
    PromptTooLongError,
    Reply,
    ToolRequest,
)
from memstory.contract.values import ToolSchema
from memstory.models.openai_chat import MAX_CHARACTERS, OpenAiChat, openai_messages
from memstory.models.openai_server import OpenAiServer, openai_server

ASKED = [Message(role="system", content="Be kind."), Message(role="user", content="Hello")]
SAVE = ToolSchema(name="save", description="Save a text.", parameters={"type": "object", "properties": {}})


def model(endpoint: Any, name: str = "tiny", **options: Any) -> OpenAiChat:
    texts = options.pop("on_text", None)
    server = OpenAiServer(endpoint.url, **{"key": "sk-right", "timeout_seconds": 5, "retries": 2, **options})
    return OpenAiChat(name, server, on_text=texts)


async def failure(chat: OpenAiChat, **options: Any) -> str:
    with pytest.raises(ChatModelUnavailableError) as caught:
        await chat.chat(ChatRequest(ASKED, **options))
    return str(caught.value)


async def test_an_answer_comes_in_pieces_with_its_tokens(openai_endpoint):
    pieces: list[str] = []
    reply = await model(openai_endpoint, on_text=pieces.append).chat(ChatRequest(ASKED, temperature=0.0))
    assert reply == Reply(content="Good day.", prompt_tokens=11, answer_tokens=7)
    assert pieces == ["Good ", "day."]
    (body,) = openai_endpoint.bodies("/v1/chat/completions")
    assert body["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
    assert (body["temperature"], body["stream"]) == (0.0, True)
    assert "tools" not in body


async def test_a_server_that_does_not_stream_sends_the_whole_answer_as_one_piece(openai_endpoint):
    openai_endpoint.streams = False
    pieces: list[str] = []
    reply = await model(openai_endpoint, on_text=pieces.append).chat(ChatRequest(ASKED))
    assert reply == Reply(content="Good day.", prompt_tokens=11, answer_tokens=7)
    assert pieces == ["Good day."]
    call = {"id": "1", "type": "function", "function": {"name": "save", "arguments": '{"text": "tea"}'}}
    openai_endpoint.deltas, openai_endpoint.finish = [{"tool_calls": [call]}], None
    reply = await model(openai_endpoint).chat(ChatRequest(ASKED, [SAVE]))
    assert reply.tool_requests == (ToolRequest(name="save", arguments={"text": "tea"}),)


async def test_missing_usage_is_no_number(openai_endpoint):
    openai_endpoint.has_usage = False
    reply = await model(openai_endpoint).chat(ChatRequest(ASKED))
    assert (reply.prompt_tokens, reply.answer_tokens) == (None, None)


async def test_tool_calls_are_put_together_from_their_pieces(openai_endpoint, openai_fake):
    openai_endpoint.deltas = [
        *openai_fake.tool_deltas("save", '{"text": "tea"}'),
        *openai_fake.tool_deltas("find", '{"query": "coffee"}', 1),
    ]
    openai_endpoint.finish = "tool_calls"
    reply = await model(openai_endpoint).chat(ChatRequest(ASKED, [SAVE]))
    assert reply.tool_requests == (
        ToolRequest(name="save", arguments={"text": "tea"}),
        ToolRequest(name="find", arguments={"query": "coffee"}),
    )
    (body,) = openai_endpoint.bodies("/v1/chat/completions")
    assert [tool["function"]["name"] for tool in body["tools"]] == ["save"]


def test_each_answer_of_a_tool_names_its_call():
    asked = Message(
        role="assistant",
        content="",
        tool_requests=[ToolRequest(name="a", arguments={"x": 1}), ToolRequest(name="b", arguments={})],
    )
    answers = [Message(role="tool", content="1", tool="a"), Message(role="tool", content="2", tool="b")]
    told = openai_messages([*ASKED, asked, *answers])
    assert [call["id"] for call in told[2]["tool_calls"]] == [told[3]["tool_call_id"], told[4]["tool_call_id"]]
    assert told[3]["tool_call_id"] != told[4]["tool_call_id"]


async def test_a_schema_is_sent_as_response_format(openai_endpoint):
    await model(openai_endpoint).chat(ChatRequest(ASKED, response_schema={"type": "object"}))
    (body,) = openai_endpoint.bodies("/v1/chat/completions")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_storm_is_waited_out(openai_endpoint, status):
    openai_endpoint.failures = [(status, "not now")] * 2
    assert (await model(openai_endpoint).chat(ChatRequest(ASKED))).content == "Good day."
    assert len(openai_endpoint.requests) == 3


async def test_an_endless_storm_is_said_with_the_number_of_tries(openai_endpoint):
    openai_endpoint.failures = [(429, "Rate limit reached")] * 9
    said = await failure(model(openai_endpoint))
    assert "429: Rate limit reached, 3 times" in said
    assert len(openai_endpoint.requests) == 3


async def test_a_wrong_key_says_where_the_right_one_goes(openai_endpoint):
    openai_endpoint.key = "sk-right"
    said = await failure(model(openai_endpoint, key="sk-wrong"))
    assert "401: Incorrect API key provided. Put the right key into OPENAI_API_KEY" in said
    assert "sk-wrong" not in said


async def test_an_unknown_model_says_where_the_known_ones_are(openai_endpoint):
    said = await failure(model(openai_endpoint, "huge"))
    assert "`huge` does not exist" in said
    assert f"{openai_endpoint.url}/models" in said


async def test_a_model_without_tools_is_to_be_changed(openai_endpoint):
    openai_endpoint.failures = [(400, "this model does not support tools")]
    assert "choose a model that calls them" in await failure(model(openai_endpoint), tools=[SAVE])


@pytest.mark.parametrize(
    "said",
    [
        "request (1040 tokens) exceeds the available context size (1024 tokens), try increasing it",
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
    ],
)
async def test_more_than_the_model_reads_at_once_is_a_failure_of_its_own(openai_endpoint, said):
    openai_endpoint.failures = [(400, said)]
    with pytest.raises(PromptTooLongError, match="larger context"):
        await model(openai_endpoint).chat(ChatRequest(ASKED))


async def test_a_silent_server_is_named_with_the_time(openai_endpoint):
    openai_endpoint.delay_seconds = 5
    assert "silent for 0.2 s" in await failure(model(openai_endpoint, timeout_seconds=0.2, retries=0))


async def test_a_server_that_is_not_there_is_to_be_started():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    chat = OpenAiChat("tiny", OpenAiServer(url, "none", retries=0))
    said = await failure(chat)
    assert said.startswith(f"Nothing answers at {url}")
    assert "--chat-url" in said


async def test_half_a_stream_is_broken_off(openai_endpoint):
    openai_endpoint.cut = True
    assert "broke off its answer" in await failure(model(openai_endpoint))


async def test_a_stream_without_its_end_is_broken_off(openai_endpoint):
    openai_endpoint.finish = None
    assert "ended without its last part" in await failure(model(openai_endpoint))


async def test_a_line_that_is_not_json_is_broken_off(openai_endpoint):
    openai_endpoint.garbage = True
    assert "broke off its answer" in await failure(model(openai_endpoint))


@pytest.mark.parametrize("arguments", ['{"text": ', '["tea"]'])
async def test_arguments_that_are_no_object_are_shown(openai_endpoint, openai_fake, arguments):
    openai_endpoint.deltas = openai_fake.tool_deltas("save", arguments)
    said = await failure(model(openai_endpoint))
    assert "called 'save' with arguments that are not" in said
    assert arguments in said


async def test_a_refusal_is_the_answer(openai_endpoint):
    openai_endpoint.deltas = [{"refusal": "I cannot help with that."}]
    assert (await model(openai_endpoint).chat(ChatRequest(ASKED))).content == "I cannot help with that."


async def test_an_endless_answer_is_stopped(openai_endpoint):
    openai_endpoint.deltas = [{"content": "again " * 10_000}] * (MAX_CHARACTERS // 50_000)
    assert "did not end its answer" in await failure(model(openai_endpoint))


async def test_a_json_answer_that_was_cut_is_broken_off(openai_endpoint):
    openai_endpoint.finish = "length"
    assert "length limit" in await failure(model(openai_endpoint), response_schema={"type": "object"})


def test_the_key_is_never_shown():
    assert "sk-right" not in repr(OpenAiServer("http://127.0.0.1/v1", "sk-right"))


def test_a_replaying_proxy_is_in_the_name_of_the_model():
    server = openai_server(environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "MEMSTORY_PROXY": "replayed"})
    assert OpenAiChat("tiny", server).name == "openai:tiny (replayed)"
