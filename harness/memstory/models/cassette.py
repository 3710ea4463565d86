"""A run with a real model, recorded to a readable file and replayed without the model.

The file is JSON that a reader can follow, in an order that does not depend on the run.
"""

from __future__ import annotations

import asyncio
import difflib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.models import REPLY, ChatModel, Message, Reply, ToolRequest
from memstory.contract.values import Json, ToolSchema, Tree

SCHEMA = "memstory.cassette/1"

AGAIN: Final = "Record the run again."
"""In the answer to a request that a recording does not have."""

SHOWN_LINES: Final = 80
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
            difference = difference_from_nearest(request.lines, (call.request.lines for call in self._calls.values()))
            said = f"{self._path} has no recording of this request (purpose {purpose}). {AGAIN}"
            raise CassetteMissError("\n".join([said, *difference] if difference else [f"{said} It holds none at all."]))
        return known.reply


def difference_from_nearest(asked: Sequence[str], recorded: Iterable[Sequence[str]]) -> list[str]:
    """Return how a request differs from the nearest of those that are recorded, both as lines; empty without any."""
    matcher = difflib.SequenceMatcher(None, b=asked, autojunk=False)

    def likeness(lines: Sequence[str]) -> float:
        matcher.set_seq1(lines)
        return matcher.quick_ratio()

    nearest = max(recorded, key=likeness, default=None)
    if nearest is None:
        return []
    lines = list(difflib.unified_diff(nearest, asked, "nearest recorded request", "this request", lineterm="", n=2))
    more = [f"… {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else []
    return [*lines[:SHOWN_LINES], *more]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a model as JSON; the order of `tools` does not matter, that of `messages` does."""

    purpose: str
    messages: Sequence[Tree]
    tools: Sequence[Tree]
    temperature: float | None
    response_schema: Tree

    @property
    def key(self) -> str:
        """Return what tells the request from all others: a digest of everything in it."""
        return _digest([self.purpose, self.messages, self.tools, self.temperature, self.response_schema])

    @property
    def lines(self) -> list[str]:
        """Return the request for a reader, the purpose first."""
        tools = [f"tool: {tool['name']} {_digest(tool)}" for tool in self.tools]
        said = [line for message in self.messages for line in _said(message)]
        schema = [] if self.response_schema is None else [f"response schema: {canonical(self.response_schema)}"]
        return [f"purpose: {self.purpose}", f"temperature: {self.temperature}", *schema, *tools, *said]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request and what the model replied."""

    request: Request
    reply: Reply


def request_of(
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    purpose: str,
    temperature: float | None,
    response_schema: Mapping[str, Tree] | None,
) -> Request:
    """Return the request that a chat model was given."""
    announced = [
        {"name": tool.name, "description": tool.description, "parameters": _plain(tool.parameters)} for tool in tools
    ]
    return Request(
        purpose=purpose,
        messages=[_message(message) for message in messages],
        tools=sorted(announced, key=canonical),
        temperature=temperature,
        response_schema=None if response_schema is None else _plain(response_schema),
    )


def read_calls(path: Path) -> tuple[str, dict[str, Call]]:
    """Return the recorded model and its calls by the keys of their requests."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        if tree["schema"] != SCHEMA:
            raise SetupError(f"{path} is of {tree['schema']!r:.60}, and this version reads {SCHEMA}. Record it again.")
        toolsets = dict(tree["toolsets"])
        calls = [_read_call(f"{path}: calls[{number}]", entry, toolsets) for number, entry in enumerate(tree["calls"])]
        return str(tree["model"]), {call.request.key: call for call in calls}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SetupError(
            f"{path} is not a recording of a chat model ({error!r:.200}). Delete it and record it again."
        ) from error
    except OSError as error:
        raise SetupError(f"the recording {path} cannot be read: {error.strerror}.") from error


def write_call(path: Path, model: str, call: Call) -> None:
    """Add `call` to the file, whole or not at all; processes that record to one file wait for each other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(path.parent):
            calls = read_calls(path)[1] if path.exists() else {}
            _replace(path, _written(model, {**calls, call.request.key: call}))
    except OSError as error:
        raise SetupError(f"the recording {path} cannot be written: {error.strerror}.") from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder itself: a recording is kept with the sources, and no file of a lock may be next to it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _written(model: str, calls: Mapping[str, Call]) -> str:
    ordered = sorted(
        calls.values(), key=lambda call: canonical([call.request.purpose, call.request.messages]) + call.request.key
    )
    toolsets = {_digest(call.request.tools): call.request.tools for call in ordered}
    tree = {
        "schema": SCHEMA,
        "model": model,
        "toolsets": dict(sorted(toolsets.items())),
        "calls": [_entry(call) for call in ordered],
    }
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _entry(call: Call) -> Tree:
    request = call.request
    return {
        "purpose": request.purpose,
        "temperature": request.temperature,
        "response_schema": request.response_schema,
        "toolset": _digest(request.tools),
        "messages": request.messages,
        "reply": {
            "content": call.reply.content,
            "tool_requests": [_requested(one) for one in call.reply.tool_requests],
            "thinking": call.reply.thinking,
        },
    }


def _read_call(place: str, entry: Tree, toolsets: Mapping[str, Tree]) -> Call:
    try:
        call = _call(entry, toolsets)
        texts = [*call.request.lines, call.reply.content, call.reply.thinking or ""]
        texts += [request.name for request in call.reply.tool_requests]
        "".join(texts).encode()
        for request in call.reply.tool_requests:
            dict(**request.arguments)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"{place} is damaged ({error!r:.200}). Delete the file and record it again.") from error
    return call


def _call(entry: Tree, toolsets: Mapping[str, Tree]) -> Call:
    reply = entry["reply"]
    request = Request(
        purpose=entry["purpose"],
        messages=entry["messages"],
        tools=toolsets[entry["toolset"]],
        temperature=entry["temperature"],
        response_schema=entry["response_schema"],
    )
    requests = tuple(ToolRequest(name=one["name"], arguments=one["arguments"]) for one in reply["tool_requests"])
    return Call(
        request=request,
        reply=Reply(content=reply["content"], tool_requests=requests, thinking=reply["thinking"]),
    )


def _message(message: Message) -> Tree:
    written: dict[str, Tree] = {"role": message.role, "content": message.content}
    if message.tool is not None:
        written["tool"] = message.tool
    if message.tool_requests:
        written["tool_requests"] = [_requested(request) for request in message.tool_requests]
    return written


def _requested(request: ToolRequest) -> Tree:
    return {"name": request.name, "arguments": _plain(request.arguments)}


def _said(message: Tree) -> list[str]:
    who = f"{message['role']} {message['tool']}" if "tool" in message else message["role"]
    called = [f"[{who} calls] {one['name']} {canonical(one['arguments'])}" for one in message.get("tool_requests", ())]
    return [*(f"[{who}] {line}" for line in message["content"].splitlines() or [""]), *called]


def _plain(value: Tree) -> Tree:
    """Return `value` as it comes back from a file: tuples are lists, mappings are dicts."""
    return json.loads(json.dumps(value, default=dict))


def canonical(value: Tree) -> str:
    """Return JSON that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(value: Tree) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)
