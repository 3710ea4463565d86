"""Conversation with a model on a server that speaks OpenAI's protocol, tools and streaming included."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai
from openai.types.chat import ChatCompletionChunk

from memstory.contract.models import (
    REPLY,
    BrokenReplyError,
    ChatModelUnavailableError,
    ChatRequest,
    Message,
    PromptTooLongError,
    Reply,
    ToolRequest,
    function_of,
)
from memstory.contract.values import Tree
from memstory.models.openai_server import OpenAiServer, is_too_long

MAX_CHARACTERS = 200_000
"""Of one answer: a model that repeats itself never ends."""


class OpenAiChat:
    """Asks `model` at `server`; every failure is a `ChatModelUnavailableError` that says what to do.

    Answers are streamed, so the server's time limit is the longest silence and not the longest answer; `on_text` gets
    each piece of a reply to the user.
    """

    def __init__(self, model: str, server: OpenAiServer, *, on_text: Callable[[str], None] | None = None) -> None:
        self.name = f"openai:{model} ({server.answers})" if server.answers else f"openai:{model}"
        self._model = model
        self._server = server
        self._on_text = on_text

    async def chat(self, request: ChatRequest) -> Reply:
        answer = _Answer()
        conversation: Tree = openai_messages(request.messages)
        schema = request.response_schema
        more: Tree = {
            "stream_options": {"include_usage": True},
            **({"tools": [function_of(tool) for tool in request.tools]} if request.tools else {}),
            **({} if request.temperature is None else {"temperature": request.temperature}),
            **({} if schema is None else {"response_format": _schema(schema)}),
        }
        try:
            async with self._server.client() as client:
                asked = client.chat.completions.with_streaming_response
                async with asked.create(model=self._model, messages=conversation, stream=True, **more) as response:
                    async for part in _parts(response):
                        said = answer.take(part)
                        if said and self._on_text is not None and request.purpose == REPLY:
                            self._on_text(said)
                        if answer.size > MAX_CHARACTERS:
                            raise self._wrong(f"did not end its answer within {MAX_CHARACTERS:,} characters")
        except (openai.APIError, ValueError, OSError) as error:
            if answer.size and not isinstance(error, openai.APITimeoutError):
                said = str(error).rstrip(".")
                raise self._wrong(f"broke off its answer after {answer.size} characters: {said}") from error
            # The client reads each line as JSON of a known shape: a ValueError is a broken line.
            kind = PromptTooLongError if is_too_long(error) else ChatModelUnavailableError
            raise kind(self._server.reason(error, self._model)) from error
        if answer.end is None:
            raise self._wrong("broke off: the stream ended without its last part")
        if answer.end == "length" and (schema is not None or answer.calls):
            raise self._wrong("reached its length limit before the JSON was complete")
        return answer.reply(self._wrong)

    def _wrong(self, what: str) -> BrokenReplyError:
        return BrokenReplyError(f"{self.name} {what}. Try again, or another model.")


async def _parts(response: Any) -> AsyncIterator[ChatCompletionChunk]:
    """Yield the parts of a reply; a server that does not stream sends one completion, which is one part."""
    if not response.headers.get("content-type", "").startswith("application/json"):
        async for part in await response.parse():
            yield part
        return
    completion = await response.json()
    if not isinstance(completion, dict) or not completion.get("choices"):
        raise ValueError("the reply is no completion: it has no 'choices'")
    choice = completion["choices"][0]
    message = choice.get("message") or {}
    calls = [{**call, "index": place} for place, call in enumerate(message.get("tool_calls") or ())]
    part = {
        "index": 0,
        "delta": {**message, "tool_calls": calls},
        "finish_reason": choice.get("finish_reason") or "stop",
    }
    usual = {"id": "", "created": 0, "model": "", **completion}
    yield ChatCompletionChunk.model_validate({**usual, "object": "chat.completion.chunk", "choices": [part]})


@dataclass(slots=True)
class _Call:
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in, piece by piece."""

    content: str = ""
    thinking: str = ""
    calls: dict[int, _Call] = field(default_factory=dict)
    end: str | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    size: int = 0

    def take(self, part: ChatCompletionChunk) -> str:
        """Take a piece; return its text."""
        if part.usage is not None:
            self.tokens = (part.usage.prompt_tokens, part.usage.completion_tokens)
        if not part.choices:
            return ""
        choice = part.choices[0]
        said = choice.delta.content or choice.delta.refusal or ""
        # Servers that show their reasoning have no common name for it; this is the most usual.
        thought = str(getattr(choice.delta, "reasoning_content", None) or "")
        self.content += said
        self.thinking += thought
        for piece in choice.delta.tool_calls or ():
            call = self.calls.setdefault(piece.index, _Call())
            if piece.function is not None:
                call.name += piece.function.name or ""
                call.arguments += piece.function.arguments or ""
                self.size += len(piece.function.arguments or "")
        self.size += len(said) + len(thought)
        self.end = choice.finish_reason or self.end
        return said

    def reply(self, wrong: Callable[[str], Exception]) -> Reply:
        requests = []
        for _, call in sorted(self.calls.items()):
            try:
                arguments = json.loads(call.arguments or "{}")
            except ValueError as error:
                raise wrong(f"called {call.name!r} with arguments that are not JSON: {call.arguments:.80}") from error
            if not isinstance(arguments, dict):
                raise wrong(f"called {call.name!r} with arguments that are not an object: {call.arguments:.80}")
            requests.append(ToolRequest(name=call.name, arguments=arguments))
        given, made = self.tokens
        return Reply(
            content=self.content,
            tool_requests=tuple(requests),
            thinking=self.thinking or None,
            prompt_tokens=given,
            answer_tokens=made,
        )


def openai_messages(messages: Sequence[Message]) -> list[dict[str, Tree]]:
    """Return a conversation in OpenAI's form: a tool's answer names its call, by an id that we give to each call."""
    told: list[dict[str, Tree]] = []
    waiting: list[str] = []
    for message in messages:
        one: dict[str, Tree] = {"role": message.role, "content": message.content}
        if message.tool_requests:
            ids = [f"call_{len(told)}_{place}" for place in range(len(message.tool_requests))]
            waiting = [*ids]
            one["tool_calls"] = [
                {
                    "id": id_,
                    "type": "function",
                    "function": {"name": request.name, "arguments": json.dumps(dict(request.arguments))},
                }
                for id_, request in zip(ids, message.tool_requests, strict=True)
            ]
        if message.role == "tool":
            # Answers come in the order of the calls.
            one["tool_call_id"] = waiting.pop(0) if waiting else f"call_{len(told)}"
        told.append(one)
    return told


def _schema(schema: Mapping[str, Tree]) -> dict[str, Tree]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}
