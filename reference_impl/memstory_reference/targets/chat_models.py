"""The reference's chat models for the shim of the harness: what `memstory.chat_models` finds by entry point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from memstory.chat import Message as ShimMessage
from memstory.chat import Reply as ShimReply
from memstory.chat import ToolRequest as ShimRequest
from memstory.errors import SetupError
from memstory.target import ToolSchema
from memstory_reference.composition.chat_models import make_chat
from memstory_reference.composition.embedders import make_embedder
from memstory_reference.errors import MemorySystemError
from memstory_reference.ports import ChatModel, Message, ToolRequest, ToolSpec
from memstory_reference.systems.topics.settings import default_topics


class OfferedChat:
    """A chat model of the reference in the harness's words; `closing` releases what it uses."""

    def __init__(self, inner: ChatModel, closing: Callable[[], Awaitable[None]] | None = None) -> None:
        self.name = inner.name
        self._inner = inner
        self._closing = closing

    async def chat(self, messages: Sequence[ShimMessage], tools: Sequence[ToolSchema]) -> ShimReply:
        """Return the model's next message."""
        specs = [ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in tools]
        with _of_the_machine():
            reply = await self._inner.chat([_message(message) for message in messages], specs)
        requests = [ShimRequest(name=one.name, args=one.arguments) for one in reply.tool_requests]
        return ShimReply(content=reply.content, requests=requests, thinking=reply.thinking)

    async def close(self) -> None:
        """Release what it uses; another `chat` opens it again."""
        if self._closing is not None:
            await self._closing()


def offline(more: str) -> OfferedChat:
    """Return the deterministic stand-in, which compares texts by MiniLM."""
    if more:
        raise SetupError(f"the chat model 'offline' takes no name behind a colon, as in 'offline:{more}'")
    host = default_topics().ollama_host
    with _of_the_machine():
        embedder = make_embedder("minilm", ollama_host=host)
        return OfferedChat(make_chat("offline", embedder, ollama_host=host), embedder.close)


def ollama(model: str) -> OfferedChat:
    """Return the model of that name on Ollama."""
    with _of_the_machine():
        return OfferedChat(make_chat(f"ollama:{model}", None, ollama_host=default_topics().ollama_host))


@contextmanager
def _of_the_machine() -> Iterator[None]:
    """Turn what a chat model raises into a SetupError: the shim's model is no part of the backend that is judged."""
    try:
        yield
    except MemorySystemError as error:
        raise SetupError(f"the shim's chat model cannot answer: {error}") from error


def _message(message: ShimMessage) -> Message:
    requests = [ToolRequest(name=one.name, arguments=one.args) for one in message.requests]
    return Message(role=message.role, content=message.content, tool_requests=requests, tool=message.tool)
