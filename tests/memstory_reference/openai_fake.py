"""A server that answers as OpenAI's protocol has it, on a free port of this machine, for tests of the real client.

It knows `/v1/chat/completions` (streamed or not, tools, usage), `/v1/embeddings`, `/v1/models`, and the errors that a
client meets. A test steers it through its public attributes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = Any
KEY = "sk-right"
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
    finish: str | None = "stop"
    has_usage: bool = True
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Status and message of the next answers; then it works."""
    delay_seconds: float = 0.0
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
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        fake.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    fake: FakeOpenAi
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.requests.append((self.path, body))
        fake.stopping.wait(fake.delay_seconds)
        if fake.key is not None and self.headers["Authorization"] != f"Bearer {fake.key}":
            self._send(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})
        elif fake.failures:
            status, message = fake.failures.pop(0)
            self._send(status, {"error": {"message": message}})
        elif body["model"] != fake.model:
            self._send(404, {"error": {"message": f"The model `{body['model']}` does not exist"}})
        elif self.path == "/v1/embeddings":
            rows = [{"index": place, "embedding": fake.embed(text)} for place, text in enumerate(body["input"])]
            self._send(200, {"object": "list", "model": fake.model, "data": rows[::-1], "usage": USAGE})
        elif body.get("stream"):
            self._stream(list(self._chunks()))
        else:
            content = "".join(delta.get("content", "") for delta in fake.deltas)
            choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": fake.finish}
            self._send(200, {"id": "c", "model": fake.model, "choices": [choice], "usage": USAGE})

    def _chunks(self) -> Iterator[bytes]:
        fake = self.fake
        for delta in fake.deltas:
            yield _chunk(fake.model, [{"index": 0, "delta": delta, "finish_reason": None}])
        if fake.garbage:
            yield b"data: {not json\n\n"
        if fake.finish is not None:
            yield _chunk(fake.model, [{"index": 0, "delta": {}, "finish_reason": fake.finish}])
        if fake.has_usage:
            yield _chunk(fake.model, [], usage=USAGE)
        yield b"data: [DONE]\n\n"

    def _send(self, status: int, answer: Json) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chunks: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, data in enumerate(chunks):
            if self.fake.cut and number == len(chunks) // 2:
                raise ConnectionAbortedError
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def handle(self) -> None:
        # A client that gave up, or a stream that was cut on purpose, ends the connection and nothing else.
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is given)
        pass


def _chunk(model: str, choices: list[Json], **more: Json) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": choices, **more}
    return f"data: {json.dumps(chunk)}\n\n".encode()
