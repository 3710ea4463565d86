from __future__ import annotations

import pytest

from memstory.contract.models import ChatRequest, Message, ToolRequest
from memstory.models.scripted_chat import SHOWN_CHARACTERS, ScriptedChat, UnscriptedCallError


def said(text: str, *results: str) -> list[Message]:
    request = Message(role="assistant", content="", tool_requests=[ToolRequest(name="search", arguments={})])
    tools = [Message(role="tool", content=result, tool="search") for result in results]
    return [
        Message(role="system", content="secret"),
        Message(role="user", content=text),
        *([request] if results else []),
        *tools,
    ]


async def test_first_rule_that_fits_replies():
    chat = ScriptedChat(
        [
            {"when": {"contains": "tea"}, "reply": "Assam"},
            {"when": {"contains": ["tea", "cup"]}, "reply": "never reached"},
            {"reply": "anything"},
        ]
    )
    assert (await chat.chat(ChatRequest(said("tea in a cup")))).content == "Assam"
    assert (await chat.chat(ChatRequest(said("coffee")))).content == "anything"


async def test_every_part_of_contains_must_be_there():
    chat = ScriptedChat([{"when": {"contains": ["tea", "cup"]}, "reply": "both"}, {"reply": "not both"}])
    assert (await chat.chat(ChatRequest(said("a cup of tea")))).content == "both"
    assert (await chat.chat(ChatRequest(said("tea")))).content == "not both"


async def test_purpose_tells_parts_of_a_system_apart():
    chat = ScriptedChat([{"when": {"purpose": "title"}, "reply": "A title"}, {"reply": "chat"}])
    assert (await chat.chat(ChatRequest(said("x"), purpose="title"))).content == "A title"
    assert (await chat.chat(ChatRequest(said("x")))).content == "chat"


async def test_same_call_gets_the_same_reply_every_time():
    chat = ScriptedChat([{"when": {"contains": "x"}, "reply": {"text": "one", "thinking": "hm"}}])
    assert await chat.chat(ChatRequest(said("x"))) == await chat.chat(ChatRequest(said("x")))


async def test_tool_result_decides_what_follows_a_call():
    chat = ScriptedChat(
        [
            {"when": {"contains": "who", "tool_result_contains": "Ana"}, "reply": "You are Ana"},
            {"when": {"contains": "who"}, "reply": {"tool_calls": [{"name": "search", "args": {"query": "who"}}]}},
        ]
    )
    (request,) = (await chat.chat(ChatRequest(said("who am I")))).tool_requests
    assert request == ToolRequest(name="search", arguments={"query": "who"})
    assert (await chat.chat(ChatRequest(said("who am I", "nothing", "user.name Ana")))).content == "You are Ana"


async def test_unmatched_call_shows_the_prompt_and_the_rules():
    chat = ScriptedChat([{"when": {"purpose": "title"}, "reply": "x"}, {"when": {"contains": "tea"}, "reply": "y"}])
    with pytest.raises(UnscriptedCallError) as unscripted:
        await chat.chat(ChatRequest(said("What about coffee?", "No memories found.")))
    text = str(unscripted.value)
    assert "What about coffee?" in text
    assert "[tool result] No memories found." in text
    assert '1. when: {"purpose": "title"}' in text
    assert '2. when: {"contains": "tea"}' in text


async def test_long_prompt_is_shown_by_both_ends():
    with pytest.raises(UnscriptedCallError) as unscripted:
        await ScriptedChat([]).chat(ChatRequest(said("begin" + "x" * 10 * SHOWN_CHARACTERS + "the question")))
    text = str(unscripted.value)
    assert len(text) < 2 * SHOWN_CHARACTERS
    assert "begin" in text
    assert "the question" in text
