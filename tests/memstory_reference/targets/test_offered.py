"""The reference's chat models, as the shim of the harness sees them."""

from __future__ import annotations

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.models import Message
from memstory.contract.target import ToolSchema
from memstory.models.loading import ollama, openai, record, replay
from memstory_reference.targets.offered import offline

NOTES = ToolSchema(
    name="save_memory",
    description="Remember something.",
    parameters={"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
)


async def test_the_stand_in_says_that_it_is_one_and_uses_the_tools():
    model = offline("")
    reply = await model.chat([Message(role="user", content="Please remember that I am allergic to nuts.")], [NOTES])
    assert "stand-in" in model.name
    assert [request.name for request in reply.tool_requests] == ["save_memory"]


@pytest.mark.parametrize(
    ("make", "more"), [(offline, "gemma3:4b"), (ollama, ""), (openai, ""), (record, "offline"), (replay, "")]
)
def test_a_name_that_makes_no_sense_is_refused_at_once(make, more):
    with pytest.raises(SetupError):
        make(more)


async def test_what_talks_for_a_backend_can_be_recorded_and_replayed(tmp_path):
    said = [Message(role="user", content="Please remember that I am allergic to nuts.")]
    first = await record(f"offline@{tmp_path / 'talk.json'}").chat(said, [NOTES])
    assert first.tool_requests
    assert await replay(str(tmp_path / "talk.json")).chat(said, [NOTES]) == first
