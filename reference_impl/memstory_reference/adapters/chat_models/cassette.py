"""A run with a real model, recorded to a readable file and replayed without the model."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from memstory.contract.errors import SetupError
from memstory.contract.models import REPLY, ChatModel, Message, Reply
from memstory.contract.values import Json, ToolSchema
from memstory_reference.adapters.chat_models.cassette_file import Call, read_calls, request_of, write_call

SHOWN_LINES = 80
"""Of a difference: a prompt may be long, and the first lines that differ say why."""


class CassetteMissError(SetupError):
    """A request that was not recorded; it shows how the nearest recorded one differs."""


class RecordingChat:
    """Asks `inner` and keeps each request and reply in `path`.

    A request that the file has already is answered from there, so a recording that was broken off goes on where it
    stopped, and a run and its replay are the same. Delete the file to record again.
    """

    def __init__(self, inner: ChatModel, path: Path) -> None:
        self.name = inner.name
        self._inner = inner
        self._path = path
        self._calls: dict[str, Call] = {}
        if path.exists():
            model, self._calls = read_calls(path)
            if model != inner.name:
                raise SetupError(
                    f"{path} was recorded with {model}, not with {inner.name}. Record to another file, or delete it."
                )

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        purpose: str = REPLY,
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        request = request_of(messages, tools, purpose, temperature, response_schema)
        known = self._calls.get(request.key)
        if known is not None:
            return known.reply
        reply = await self._inner.chat(
            messages, tools, purpose=purpose, temperature=temperature, response_schema=response_schema
        )
        call = Call(request=request, reply=reply)
        self._calls[request.key] = call
        await asyncio.to_thread(write_call, self._path, self.name, call)
        return reply


class ReplayingChat:
    """Answers from a recorded file; its name says `replayed` and which model was recorded."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise SetupError(f"there is no recording at {path}. Make it with: --chat record:ollama:qwen3:4b@{path}")
        model, self._calls = read_calls(path)
        self.name = f"{model} (replayed)"
        self._path = path

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        purpose: str = REPLY,
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        request = request_of(messages, tools, purpose, temperature, response_schema)
        known = self._calls.get(request.key)
        if known is None:
            raise CassetteMissError(
                _miss(self._path, request.lines, [call.request.lines for call in self._calls.values()])
            )
        return known.reply


def _miss(path: Path, asked: Sequence[str], recorded: Sequence[Sequence[str]]) -> str:
    head = f"{path} has no recording of this request (purpose {asked[0].partition(': ')[2]}). Record the run again."
    if not recorded:
        return f"{head} It holds no requests at all."
    nearest = max(recorded, key=lambda lines: difflib.SequenceMatcher(None, lines, asked, autojunk=False).ratio())
    difference = list(
        difflib.unified_diff(nearest, asked, "nearest recorded request", "this request", lineterm="", n=2)
    )
    more = [f"… {len(difference) - SHOWN_LINES} more lines"] if len(difference) > SHOWN_LINES else []
    return "\n".join([head, *difference[:SHOWN_LINES], *more])
