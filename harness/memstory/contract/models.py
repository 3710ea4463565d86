"""Chat models, as everybody here talks to one: messages, tool requests, replies, and what a model has to offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Protocol

from memstory.contract.errors import UnavailableError
from memstory.contract.values import Json, ToolSchema, Tree

REPLY: Final = "chat"
"""The purpose of a call whose answer the user reads; no other answer is shown while it comes in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A tool call that a model asks for."""

    name: str
    arguments: Mapping[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation. `role` is system, user, assistant or tool; `tool` names the tool that answered."""

    role: str
    content: str
    tool_requests: Sequence[ToolRequest] = ()
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is asked: a conversation, and the tools that it may call.

    `purpose` says which part of a memory asks. With a `response_schema` the reply is JSON that fits it.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    _: KW_ONLY
    purpose: str = REPLY
    temperature: float | None = None
    response_schema: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said: words, tool requests, or both; tokens as its server counts them, None if it counts none."""

    content: str
    tool_requests: Sequence[ToolRequest] = ()
    thinking: str | None = None
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class ChatModelUnavailableError(UnavailableError):
    """A chat model that cannot answer now; the message says what to do."""


class BrokenReplyError(ChatModelUnavailableError):
    """A reply that began and did not come to its end: the model is there, and asked the same may do the same."""


class PromptTooLongError(ChatModelUnavailableError):
    """More than the model reads at once; asked less, it answers."""


class ChatModel(Protocol):
    """A language model that may call tools. `name` says 'stand-in' if there is no model behind it.

    One that holds something open has `async close()` too; another `chat` may open it again.
    """

    name: str

    async def chat(self, request: ChatRequest) -> Reply:
        """Return the model's next message.

        Raises:
            ChatModelUnavailableError: it cannot answer now.
        """
        ...


def function_of(tool: ToolSchema) -> dict[str, Tree]:
    """Return a tool as JSON in the form by which the protocols of OpenAI and Ollama announce it."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
