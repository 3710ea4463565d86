"""The reference's chat models, as the shim of the harness sees them."""

from __future__ import annotations

import pytest

from memstory.chat import Message, ToolRequest
from memstory.contract.errors import SetupError
from memstory.contract.target import ToolSchema
from memstory_reference.ports import ChatModelUnavailableError, Reply
from memstory_reference.ports import ToolRequest as OwnRequest
from memstory_reference.targets.offered import OfferedChat, offline, ollama, record, replay

NOTES = ToolSchema(
    name="save_memory",
    description="Remember something.",
    parameters={"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
)


class Echo:
    name = "echo (stand-in)"

    def __init__(self, error=None):
        self.error, self.asked = error, []

    async def chat(self, messages, tools=(), **more):
        self.asked.append((messages, tools))
        if self.error:
            raise self.error
        return Reply(content="", tool_requests=[OwnRequest(name="save_memory", arguments={"content": "x"})])


async def test_messages_tools_and_requests_cross_over_whole():
    model = Echo()
    earlier = Message(role="assistant", content="", requests=[ToolRequest(name="save_memory", args={"content": "y"})])
    reply = await OfferedChat(model).chat([earlier, Message(role="tool", content="ok", tool="save_memory")], [NOTES])
    assert reply.requests == [ToolRequest(name="save_memory", args={"content": "x"})]
    ((first, second), (tool,)) = model.asked[0]
    assert first.tool_requests == [OwnRequest(name="save_memory", arguments={"content": "y"})]
    assert (second.role, second.content, second.tool) == ("tool", "ok", "save_memory")
    assert (tool.name, tool.parameters) == ("save_memory", NOTES.parameters)


async def test_a_model_that_is_down_is_the_machines_and_not_the_backends():
    model = OfferedChat(Echo(ChatModelUnavailableError("start Ollama with 'ollama serve'")))
    with pytest.raises(SetupError, match="the shim's chat model cannot answer: start Ollama"):
        await model.chat([Message(role="user", content="hi")], [])


async def test_the_stand_in_says_that_it_is_one_and_uses_the_tools():
    model = offline("")
    try:
        reply = await model.chat([Message(role="user", content="Please remember that I am allergic to nuts.")], [NOTES])
    finally:
        await model.close()
    assert "stand-in" in model.name
    assert [request.name for request in reply.requests] == ["save_memory"]


@pytest.mark.parametrize(("make", "more"), [(offline, "gemma3:4b"), (ollama, "")])
def test_a_name_that_makes_no_sense_is_refused_at_once(make, more):
    with pytest.raises(SetupError):
        make(more)


async def test_what_talks_for_a_backend_can_be_recorded_and_replayed(tmp_path):
    said = [Message(role="user", content="Please remember that I am allergic to nuts.")]
    first = await record(f"offline@{tmp_path / 'talk.json'}").chat(said, [NOTES])
    assert first.requests
    assert await replay(str(tmp_path / "talk.json")).chat(said, [NOTES]) == first
