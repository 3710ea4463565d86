"""A server that answers as OpenAI's protocol has it, on a free port of this machine, for tests of the real client.

It knows `/v1/chat/completions` (streamed or not, tools, usage), `/v1/embeddings`, `/v1/models`, and the errors that a
client meets. A test steers it through its public attributes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from memstory_tests_local_server import LocalHandler, serving

Json: TypeAlias = Any
KEY = "sk-right"
RETRY = {"Retry-After": "0"}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(slots=True)
class FakeOpenAi:
    """What the server has and does; `requests` is what it was asked, oldest first."""

    model: str = "tiny"
    key: str | None = None
    """The key that it wants; None takes any."""
    requests: list[tuple[str, Json]] = field(default_factory=list)
    deltas: list[Json] = field(default_factory=lambda: [{"content": "Good "}, {"content": "day."}])
    """The pieces of each answer."""
    reply: Callable[[Json], list[Json]] | None = None
    """The pieces of the answer to a request, in the place of `deltas`."""
    finish: str | None = "stop"
    has_usage: bool = True
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Status and message of the next answers; then it works."""
    delay_seconds: float = 0.0
    streams: bool = True
    """Whether it heeds the wish for a stream; else it sends one completion."""
    cut: bool = False
    garbage: bool = False
    embed: Callable[[str], list[float]] = field(default=lambda text: [1.0, float(len(text)), 2.0])
    stopping: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def bodies(self, path: str) -> list[Json]:
        return [body for asked, body in self.requests if asked == path]


def tool_deltas(name: str, arguments: str, index: int = 0) -> list[Json]:
    """Return the pieces in which a server streams a tool call: the name, then its arguments in two halves."""
    middle = len(arguments) // 2
    first = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    halves = [{"index": index, "function": {"arguments": part}} for part in (arguments[:middle], arguments[middle:])]
    return [{"tool_calls": [piece]} for piece in (first, *halves)]


def serve(fake: FakeOpenAi) -> Iterator[FakeOpenAi]:
    """Serve `fake` while the generator is suspended; its `url` says where."""
    return serving(fake, _Handler, "/v1")


class _Handler(LocalHandler):
    fake: FakeOpenAi
    stream_type = "text/event-stream"

    def answer(self, body: Json) -> None:
        fake = self.fake
        fake.requests.append((self.path, body))
        fake.stopping.wait(fake.delay_seconds)
        if fake.key is not None and self.headers["Authorization"] != f"Bearer {fake.key}":
            self.send(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, **RETRY)
        elif fake.failures:
            status, message = fake.failures.pop(0)
            self.send(status, {"error": {"message": message}}, **RETRY)
        elif body["model"] != fake.model:
            self.send(404, {"error": {"message": f"The model `{body['model']}` does not exist"}}, **RETRY)
        elif self.path == "/v1/embeddings":
            rows = [{"index": place, "embedding": fake.embed(text)} for place, text in enumerate(body["input"])]
            self.send(200, {"object": "list", "model": fake.model, "data": rows[::-1], "usage": USAGE}, **RETRY)
        elif body.get("stream") and fake.streams:
            self.stream(self._pieces(list(self._chunks(fake.deltas if fake.reply is None else fake.reply(body)))))
        else:
            content = "".join(delta.get("content", "") for delta in fake.deltas)
            calls = [call for delta in fake.deltas for call in delta.get("tool_calls", ())]
            message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
            choice = {"index": 0, "message": message, "finish_reason": fake.finish}
            usage = {"usage": USAGE} if fake.has_usage else {}
            self.send(200, {"id": "c", "model": fake.model, "choices": [choice], **usage}, **RETRY)

    def _pieces(self, chunks: list[bytes]) -> Iterator[bytes]:
        for number, data in enumerate(chunks):
            if self.fake.cut and number == len(chunks) // 2:
                raise ConnectionAbortedError
            yield data

    def _chunks(self, deltas: list[Json]) -> Iterator[bytes]:
        fake = self.fake
        for delta in deltas:
            yield _chunk(fake.model, [{"index": 0, "delta": delta, "finish_reason": None}])
        if fake.garbage:
            yield b"data: {not json\n\n"
        if fake.finish is not None:
            yield _chunk(fake.model, [{"index": 0, "delta": {}, "finish_reason": fake.finish}])
        if fake.has_usage:
            yield _chunk(fake.model, [], usage=USAGE)
        yield b"data: [DONE]\n\n"


def _chunk(model: str, choices: list[Json], **more: Json) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": choices, **more}
    return f"data: {json.dumps(chunk)}\n\n".encode()
