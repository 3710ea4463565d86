"""The one loop in which a chat model asks for tools, reads what they answer, and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from memstory.contract.models import ChatModel, Message, Reply, ToolRequest
from memstory.contract.values import ToolCall, ToolSchema
from memstory_reference.input_checks import DEFAULT_LIMITS

ROUNDS = 6
CALLS = DEFAULT_LIMITS.max_tool_calls
NO_ANSWER = "I have no answer to that."


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The model's last reply and the way to it; `messages` are those after the prompt, without the last reply."""

    reply: Reply
    messages: Sequence[Message]
    outcomes: Sequence[ToolCall]
    thoughts: Sequence[str]


async def converse(
    chat: ChatModel,
    prompt: Sequence[Message],
    *,
    tools: Callable[[], Sequence[ToolSchema]],
    use: Callable[[ToolRequest], Awaitable[ToolCall]],
    rounds: int = ROUNDS,
    calls: int = CALLS,
) -> Talk:
    """Let `chat` use tools for at most `rounds` rounds; after the last it has to answer without them.

    Of each reply the first `calls` calls are made; the others are answered with an error that says so.
    """
    messages, outcomes, thoughts = list[Message](), list[ToolCall](), list[str]()

    async def ask(offered: Sequence[ToolSchema]) -> Reply:
        reply = await chat.chat([*prompt, *messages], offered)
        thoughts.extend([reply.thinking] if reply.thinking else [])
        return reply

    for _ in range(rounds):
        reply = await ask(tools())
        if not reply.tool_requests:
            break
        messages.append(Message(role="assistant", content=reply.content, tool_requests=tuple(reply.tool_requests)))
        for place, request in enumerate(reply.tool_requests):
            outcome = await use(request) if place < calls else _not_called(request, calls)
            outcomes.append(outcome)
            messages.append(Message(role="tool", content=outcome.text, tool=outcome.name))
    else:
        thoughts.append(f"Stopped after {rounds} rounds of tool calls.")
        reply = await ask([])
    return Talk(reply=reply, messages=messages, outcomes=outcomes, thoughts=thoughts)


def _not_called(request: ToolRequest, calls: int) -> ToolCall:
    error = f"not called: one reply may call {calls} tools (max_tool_calls); ask again for what is still needed"
    return ToolCall(name=request.name, args=request.arguments, error=error)
