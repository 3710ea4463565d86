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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memstory.contract.codec import decode, encode
from memstory.contract.errors import SetupError
from memstory.contract.models import BrokenReplyError, ChatModel, ChatRequest, Message, Reply
from memstory.contract.values import Tree
from memstory.results.folder.whole_files import write_text

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
        self._calls: dict[str, Exchange] = {}
        if path.exists():
            model, self._calls = read_calls(path)
            if model != inner.name:
                raise SetupError(
                    f"{path} was recorded with {model}, not with {inner.name}. Record to another file, or delete it."
                )

    async def chat(self, request: ChatRequest) -> Reply:
        key = key_of(request)
        known = self._calls.get(key)
        if known is None:
            known = self._calls[key] = Exchange(request, await self._reply(request))
            await asyncio.to_thread(write_call, self._path, self.name, known)
        return known.heard()

    async def _reply(self, request: ChatRequest) -> Reply | str:
        try:
            return await self._inner.chat(request)
        except BrokenReplyError as error:
            return str(error)


class ReplayingChat:
    """Answers from a recorded file; its name says `replayed` and which model was recorded."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise SetupError(f"there is no recording at {path}. Make it with: --chat record:ollama:qwen3:4b@{path}")
        model, self._calls = read_calls(path)
        self.name = f"{model} (replayed)"
        self._path = path
        self._how = f"Delete the file, and run with --chat record:{model}@{path}"

    async def chat(self, request: ChatRequest) -> Reply:
        known = self._calls.get(key_of(request))
        if known is None:
            difference = difference_from_nearest(
                _lines(request), (_lines(call.request) for call in self._calls.values())
            )
            said = f"{self._path} has no recording of this request (purpose {request.purpose}). {AGAIN} {self._how}"
            raise CassetteMissError("\n".join([said, *difference] if difference else [f"{said} It holds none at all."]))
        return known.heard()


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


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and the reply; a text says how the reply broke off, which it does again if asked the same."""

    request: ChatRequest
    reply: Reply | str

    def heard(self) -> Reply:
        """Return the reply, or raise BrokenReplyError."""
        if isinstance(self.reply, str):
            raise BrokenReplyError(self.reply)
        return self.reply


def key_of(request: ChatRequest) -> str:
    """Return what tells a request from all others: a digest, for which the order of the tools does not matter."""
    return _digest({**encode(request), "tools": _tools(request)})


def _lines(request: ChatRequest) -> list[str]:
    """Return a request for a reader, the purpose first."""
    tools = [f"tool: {tool['name']} {_digest(tool)}" for tool in _tools(request)]
    schema = request.response_schema
    expected = [] if schema is None else [f"response schema: {canonical(encode(schema))}"]
    said = [line for message in request.messages for line in _message_lines(message)]
    return [f"purpose: {request.purpose}", f"temperature: {request.temperature}", *expected, *tools, *said]


def _message_lines(message: Message) -> list[str]:
    who = message.role if message.tool is None else f"{message.role} {message.tool}"
    called = [f"[{who} calls] {one.name} {canonical(encode(one.arguments))}" for one in message.tool_requests]
    return [*(f"[{who}] {line}" for line in message.content.splitlines() or [""]), *called]


def _tools(request: ChatRequest) -> list[Tree]:
    return sorted(encode(request.tools), key=canonical)


def read_calls(path: Path) -> tuple[str, dict[str, Exchange]]:
    """Return the recorded model and its calls by the keys of their requests."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        if tree["schema"] != SCHEMA:
            raise SetupError(f"{path} is of {tree['schema']!r:.60}, and this version reads {SCHEMA}. Record it again.")
        toolsets = dict(tree["toolsets"])
        calls = [_read_call(f"{path}: calls[{number}]", entry, toolsets) for number, entry in enumerate(tree["calls"])]
        return str(tree["model"]), {key_of(call.request): call for call in calls}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SetupError(
            f"{path} is not a recording of a chat model ({error!r:.200}). Delete it and record it again."
        ) from error
    except OSError as error:
        raise SetupError(f"the recording {path} cannot be read: {error.strerror}.") from error


def write_call(path: Path, model: str, call: Exchange) -> None:
    """Add `call` to the file, whole or not at all; processes that record to one file wait for each other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(path.parent):
            calls = read_calls(path)[1] if path.exists() else {}
            write_text(path, _file_text(model, {**calls, key_of(call.request): call}))
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


def _file_text(model: str, calls: Mapping[str, Exchange]) -> str:
    entries = {key: _entry(call) for key, call in calls.items()}
    ordered = sorted(entries, key=lambda key: canonical([entries[key]["purpose"], entries[key]["messages"]]) + key)
    toolsets = {entry["toolset"]: _tools(calls[key].request) for key, entry in entries.items()}
    tree = {
        "schema": SCHEMA,
        "model": model,
        "toolsets": dict(sorted(toolsets.items())),
        "calls": [entries[key] for key in ordered],
    }
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _entry(call: Exchange) -> dict[str, Tree]:
    request, reply = call.request, call.reply
    return {
        "purpose": request.purpose,
        "temperature": request.temperature,
        "response_schema": encode(request.response_schema),
        "toolset": _digest(_tools(request)),
        "messages": [_message(message) for message in request.messages],
        "reply": {"broken": reply} if isinstance(reply, str) else _said(reply),
    }


def _said(reply: Reply) -> Tree:
    return encode({"content": reply.content, "tool_requests": reply.tool_requests, "thinking": reply.thinking})


def _message(message: Message) -> Tree:
    """Return a message as JSON, in which only what it has is named."""
    optional = {"tool": message.tool, "tool_requests": encode(message.tool_requests)}
    return {"role": message.role, "content": message.content, **{name: one for name, one in optional.items() if one}}


def _read_call(place: str, entry: Tree, toolsets: Mapping[str, Tree]) -> Exchange:
    names = ("purpose", "messages", "temperature", "response_schema")
    try:
        # What cannot be written as UTF-8 could not be sent either.
        canonical(entry).encode()
        request = {name: entry[name] for name in names} | {"tools": toolsets[entry["toolset"]]}
        reply = entry["reply"]
        return Exchange(
            decode(ChatRequest, request), str(reply["broken"]) if "broken" in reply else decode(Reply, reply)
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"{place} is damaged ({error!r:.200}). Delete the file and record it again.") from error


def canonical(value: Tree) -> str:
    """Return JSON that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(value: Tree) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]
