"""A server that answers as Ollama does, on a free port of this machine, for tests that drive the real client.

Written from Ollama's API page and source. It knows `/api/embed`, `/api/chat` (streamed or not, tools), `/api/tags`,
`/api/show`, `/api/version`, and the errors a client meets. A test steers it through its public attributes.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from memstory_tests_local_server import LocalHandler, serving

Json: TypeAlias = Any
NOW = "2026-01-01T12:00:00.000000Z"
TIMINGS = {"total_duration": 5_000_000, "load_duration": 1_000_000, "prompt_eval_count": 7}


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeModel:
    """A model that was pulled. `capabilities` as `/api/show` names them: completion, tools, embedding, thinking."""

    capabilities: tuple[str, ...]
    dimension: int = 0
    context: int = 2048


MODELS = {
    "nomic-embed-text:latest": FakeModel(capabilities=("embedding",), dimension=768),
    "all-minilm:latest": FakeModel(capabilities=("embedding",), dimension=384, context=256),
    "qwen3:4b": FakeModel(capabilities=("completion", "tools", "thinking")),
    "gemma3:4b": FakeModel(capabilities=("completion",)),
}


class ApiError(Exception):
    """An answer of `{"error": …}` with an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class FakeOllama:
    """What the server has and does; `requests` is what it was asked, oldest first."""

    models: dict[str, FakeModel] = field(default_factory=lambda: dict(MODELS))
    requests: list[tuple[str, Json]] = field(default_factory=list)
    replies: list[Json] = field(default_factory=list)
    """Messages for the next chats, in turn; without one `reply` is asked."""
    reply: Callable[[Json], Json] = field(default=lambda body: {"content": body["messages"][-1]["content"]})
    """What the model says to a chat request; by default it repeats the last message."""
    embed: Callable[[FakeModel, str], list[float]] = field(default=lambda model, text: vector(text, model.dimension))
    change_answer: Callable[[Json], Json] = field(default=lambda answer: answer)
    """Applied to every embed answer, to break it."""
    delay_seconds: float = 0.0
    """Waited before each answer, and between the lines of a stream."""
    fail: tuple[int, str] | None = None
    """Status and message of every answer, as a broken server gives them."""
    stream_error: str | None = None
    """An error line in the middle of each stream, under HTTP 200."""
    cut_stream: bool = False
    """Close the connection in the middle of each stream."""
    stopping: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def bodies(self, path: str) -> list[Json]:
        return [body for asked, body in self.requests if asked == path]

    def wait(self) -> None:
        self.stopping.wait(self.delay_seconds)

    def answer(self, path: str, body: Json) -> Json | Iterator[Json]:
        if self.fail:
            raise ApiError(*self.fail)
        match path:
            case "/api/version":
                return {"version": "0.12.3"}
            case "/api/tags":
                return {"models": [_tag(name) for name in self.models]}
            case "/api/show":
                model = self._model(body["model"], "model '{}' not found")
                return {"capabilities": list(model.capabilities), "details": {"family": "fake"}, "model_info": {}}
            case "/api/embed":
                return self.change_answer(self._embed(body))
            case "/api/chat":
                return self._chat(body)
            case _:
                raise ApiError(404, "404 page not found")

    def _model(self, name: str, missing: str) -> FakeModel:
        full = name if ":" in name else f"{name}:latest"
        if full not in self.models:
            raise ApiError(404, missing.format(name))
        return self.models[full]

    def _embed(self, body: Json) -> Json:
        model = self._model(body["model"], 'model "{}" not found, try pulling it first')
        given = body.get("input", "")
        texts = ([given] if given else []) if isinstance(given, str) else given
        if not model.dimension and texts:
            raise ApiError(400, "this model does not support embeddings")
        if body.get("truncate") is False and any(len(text.split()) > model.context for text in texts):
            raise ApiError(400, "the input length exceeds the context length")
        return {"model": body["model"], "embeddings": [self.embed(model, text) for text in texts], **TIMINGS}

    def _chat(self, body: Json) -> Json | Iterator[Json]:
        model = self._model(body["model"], "model '{}' not found")
        if "completion" not in model.capabilities:
            raise ApiError(400, f'"{body["model"]}" does not support chat')
        if body.get("tools") and "tools" not in model.capabilities:
            raise ApiError(400, f"registry.ollama.ai/library/{body['model']} does not support tools")
        message = self.replies.pop(0) if self.replies else self.reply(body)
        start = {"model": body["model"], "created_at": NOW}
        end = {"done": True, "done_reason": "stop", "eval_count": 3, "eval_duration": 2_000_000, **TIMINGS}
        if body.get("stream", True) is False:
            return {**start, "message": {"role": "assistant", "content": "", **message}, **end}
        return self._lines(start, message, end)

    def _lines(self, start: Json, message: Json, end: Json) -> Iterator[Json]:
        parts = [{key: value} for key, value in message.items() if key != "content"]
        parts += [{"content": part} for part in _halves(message.get("content", ""))]
        for number, part in enumerate(parts):
            if number == len(parts) // 2 and self.stream_error:
                yield {"error": self.stream_error}
                return
            yield {**start, "message": {"role": "assistant", "content": "", **part}, "done": False}
            self.wait()
            if self.cut_stream:
                raise ConnectionAbortedError
        yield {**start, "message": {"role": "assistant", "content": ""}, **end}


def vector(text: str, dimension: int) -> list[float]:
    """Return a unit vector that depends on the text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    numbers = np.random.default_rng(seed).normal(size=dimension)
    return list((numbers / np.linalg.norm(numbers)).astype(float))


def tool_call(name: str, **arguments: Json) -> Json:
    """Return an assistant message that calls a tool, as Ollama writes it."""
    function = {"index": 0, "name": name, "arguments": arguments}
    return {"content": "", "tool_calls": [{"id": f"call_{name}", "function": function}]}


def serve(fake: FakeOllama) -> Iterator[FakeOllama]:
    """Serve `fake` while the generator is suspended; its `url` says where."""
    return serving(fake, _Handler)


class _Handler(LocalHandler):
    fake: FakeOllama
    json_type = "application/json; charset=utf-8"
    stream_type = "application/x-ndjson"

    def answer(self, body: Json) -> None:
        self.fake.requests.append((self.path, body))
        self.fake.wait()
        try:
            answer = self.fake.answer(self.path, body)
        except ApiError as error:
            self.send(error.status, {"error": error.message})
            return
        if isinstance(answer, Iterator):
            self.stream(json.dumps(line).encode() + b"\n" for line in answer)
        else:
            self.send(200, answer)


def _tag(name: str) -> Json:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {"name": name, "model": name, "modified_at": NOW, "size": 1, "digest": digest, "details": {"family": "fake"}}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
