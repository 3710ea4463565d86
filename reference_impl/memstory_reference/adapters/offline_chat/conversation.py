"""A conversation as the rules see it: the last thing said, what was said before, and what the tools have answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat import tool_roles
from memstory_reference.adapters.offline_chat.tool_results import ToolResult, read_result
from memstory_reference.adapters.offline_chat.tool_roles import Roles
from memstory_reference.adapters.offline_chat.utterances import Reading, read
from memstory_reference.ports import Message, ToolRequest, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What matters of the messages: the reading of the last thing said, and the results that came since."""

    reading: Reading
    earlier: Sequence[str]
    results: Sequence[ToolResult]
    roles: Roles


def read_conversation(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Conversation:
    """Read messages; only what the user said decides what is done, system and tool texts never do."""
    at = next((index for index in reversed(range(len(messages))) if messages[index].role == "user"), None)
    if at is None:
        return Conversation(reading=Reading(), earlier=(), results=(), roles=Roles())
    earlier = tuple(message.content for message in messages[:at] if message.role == "user")
    reading = read(messages[at].content, earlier, _talked_about(messages[:at]))
    return Conversation(
        reading=reading, earlier=earlier, results=tuple(_results(messages[at + 1 :])), roles=tool_roles.assign(tools)
    )


def _talked_about(before: Sequence[Message]) -> str | None:
    """Return the topic of the last message that had one; without any, that of the last call."""
    said = (_topic_of(message.content) for message in reversed(before) if message.role == "user")
    called = (
        request.arguments.get(name)
        for message in reversed(before)
        for request in reversed(message.tool_requests)
        for name in ("topic", "key")
    )
    return next((topic for topic in (*said, *called) if isinstance(topic, str) and topic.strip()), None)


def _topic_of(text: str) -> str | None:
    reading = read(text)
    if reading.facts:
        return reading.facts[-1].topic
    if reading.question is not None and reading.question.keys:
        return reading.question.keys[0]
    return reading.mentions


def _results(after: Sequence[Message]) -> Iterator[ToolResult]:
    """Pair each tool message with its request: in order, and by name where both say one."""
    waiting: list[ToolRequest] = []
    for message in after:
        if message.role == "assistant":
            waiting = list(message.tool_requests)
        elif message.role == "tool":
            at = next((index for index, one in enumerate(waiting) if message.tool in {None, one.name}), None)
            request = waiting.pop(at) if at is not None else ToolRequest(name=message.tool or "", arguments={})
            yield read_result(request, message.content, reads=not tool_roles.writes(request))
