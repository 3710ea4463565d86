"""A chat model whose tool calls can be watched while they happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from memstory.contract.models import ChatModel, ChatRequest, Reply, ToolRequest
from memstory.contract.values import ToolCall
from memstory_reference.commands.terminal_text import cell, json_text

SHOWN_CHARACTERS = 160


class WatchedChat:
    """Tells `show` what `inner` asks of tools, as it asks, and what they answered, before it reads that."""

    def __init__(self, inner: ChatModel, show: Callable[[str], None]) -> None:
        self.name = inner.name
        self._inner = inner
        self._show = show

    async def chat(self, request: ChatRequest) -> Reply:
        answered = list(takewhile(lambda message: message.role == "tool", reversed(request.messages)))
        for message in reversed(answered):
            self._show(answer_line(message.content))
        reply = await self._inner.chat(request)
        for called in reply.tool_requests:
            self._show(call_line(called))
        return reply


def show_calls(outcomes: Sequence[ToolCall], show: Callable[[str], None]) -> None:
    """Tell `show` what another process has asked of tools, and what they answered."""
    for outcome in outcomes:
        show(call_line(ToolRequest(name=outcome.name, arguments=outcome.args)))
        show(answer_line(outcome.text))


def call_line(request: ToolRequest) -> str:
    """Return the line that shows a call."""
    return f"  → {cell(call_text(request), SHOWN_CHARACTERS)}"


def answer_line(text: str) -> str:
    """Return the line that shows what a tool answered."""
    return f"  ← {cell(text, SHOWN_CHARACTERS)}"


def call_text(request: ToolRequest) -> str:
    """Return a call as it is written in a program.

    >>> call_text(ToolRequest(name="save_topic", arguments={"topic": "user.name", "content": "Ana"}))
    'save_topic(topic="user.name", content="Ana")'
    """
    arguments = ", ".join(f"{name}={json_text(value)}" for name, value in request.arguments.items())
    return f"{request.name}({arguments})"
