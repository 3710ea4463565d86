"""What the reference offers to other people's backends, by entry point: chat models for the shim, and embedders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memstory.chat import Message as ShimMessage
from memstory.chat import Reply as ShimReply
from memstory.chat import ToolRequest as ShimRequest
from memstory.contract.errors import SetupError
from memstory.contract.target import ToolSchema
from memstory.targets.embedders import Purpose as HarnessPurpose
from memstory_reference.composition.chat_models import OFFLINE, make_chat
from memstory_reference.composition.embedders import MINILM, OLLAMA, OPENAI, RANDOM, make_embedder
from memstory_reference.errors import MemorySystemError
from memstory_reference.ollama_address import ollama_host
from memstory_reference.ports import ChatModel, Message, Purpose, ToolRequest, ToolSpec
from memstory_reference.targets.refusals import in_harness_words

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder


class OfferedChat:
    """A chat model of the reference in the harness's words."""

    def __init__(self, inner: ChatModel) -> None:
        self.name = inner.name
        self._inner = inner

    async def chat(self, messages: Sequence[ShimMessage], tools: Sequence[ToolSchema]) -> ShimReply:
        """Return the model's next message."""
        specs = [ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in tools]
        with _of_the_machine():
            reply = await self._inner.chat([_message(message) for message in messages], specs)
        requests = [ShimRequest(name=one.name, args=one.arguments) for one in reply.tool_requests]
        return ShimReply(
            content=reply.content,
            requests=requests,
            thinking=reply.thinking,
            prompt_tokens=reply.prompt_tokens,
            answer_tokens=reply.answer_tokens,
        )

    async def close(self) -> None:
        """Release nothing: it holds nothing open."""


class OfferedEmbedder:
    """An embedder of the reference in the harness's words."""

    def __init__(self, inner: CachedEmbedder) -> None:
        self.model = inner.model
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: HarnessPurpose) -> list[list[float]]:
        """Return one vector a text."""
        with in_harness_words():
            vectors = await self._inner.embed(texts, Purpose(purpose))
        rows: list[list[float]] = vectors.tolist()
        return rows

    async def close(self) -> None:
        """Close the cache; another `embed` opens it again."""
        await self._inner.close()


def offline(more: str) -> OfferedChat:
    """Return the deterministic stand-in, which compares texts by MiniLM where its weights are here."""
    if more:
        raise SetupError(f"the chat model 'offline' takes no name behind a colon, as in 'offline:{more}'")
    return _named(OFFLINE)


def ollama(model: str) -> OfferedChat:
    """Return the model of that name on Ollama."""
    return _named(f"{OLLAMA}{model}")


def openai(model: str) -> OfferedChat:
    """Return the model of that name on the server that OPENAI_BASE_URL names."""
    return _named(f"{OPENAI}{model}")


def record(model_at_file: str) -> OfferedChat:
    """Return a model whose calls are kept in a file: `ollama:qwen3:4b@run.json`."""
    return _named(f"record:{model_at_file}")


def replay(file: str) -> OfferedChat:
    """Return the model that answers what `record` kept in that file."""
    return _named(f"replay:{file}")


def _named(name: str) -> OfferedChat:
    with _of_the_machine():
        return OfferedChat(make_chat(name, ollama_host=ollama_host()))


def minilm() -> OfferedEmbedder:
    """Return all-MiniLM-L6-v2 with this machine's cache before it."""
    with in_harness_words():
        return OfferedEmbedder(make_embedder(MINILM, ollama_host=ollama_host()))


def random() -> OfferedEmbedder:
    """Return an embedder of vectors by chance: for how long a memory takes, not for what it finds."""
    return OfferedEmbedder(make_embedder(RANDOM, ollama_host=ollama_host()))


@contextmanager
def _of_the_machine() -> Iterator[None]:
    """Turn what a chat model raises into a SetupError: the shim's model is not part of the backend that is judged."""
    try:
        yield
    except MemorySystemError as error:
        raise SetupError(f"the shim's chat model cannot answer: {error}") from error


def _message(message: ShimMessage) -> Message:
    requests = [ToolRequest(name=one.name, arguments=one.args) for one in message.requests]
    return Message(role=message.role, content=message.content, tool_requests=requests, tool=message.tool)
