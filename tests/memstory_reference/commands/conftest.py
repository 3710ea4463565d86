"""The commands over a real store, with an embedder of a few lines, typed input, and a model that streams."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from memstory_reference import cli
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.composition import embedders
from memstory_reference.ports import Purpose, Vectors


class WordEmbedder:
    """Texts that share words are near; stands for MiniLM, so that a store of one opens with the other."""

    model = embedders.MINILM
    dimension: int | None = 384
    profile = NO_PREFIXES

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = np.full((len(texts), 384), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, crc32(word.encode()) % 384] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Typed(io.StringIO):
    """Input as from a keyboard: a terminal, where an empty read is Ctrl-D."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path, tmp_path_factory) -> Callable[..., Ran]:
    """Run `memstory-reference` in an empty folder and home, with these lines on a pipe or at a terminal."""
    monkeypatch.chdir(tmp_path)
    # Some memories lie in the home by default: not in that of whoever runs the tests, nor in one for all workers.
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    embedder = WordEmbedder()
    monkeypatch.setattr(embedders, "make_embedder", lambda *_, **__: embedder)
    monkeypatch.delenv("OLLAMA_HOST", raising=False)

    def run(*arguments: str, lines: Sequence[str] = (), at_terminal: bool = False) -> Ran:
        text = "".join(f"{line}\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", Typed(text) if at_terminal else io.StringIO(text))
        if at_terminal:
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        code = cli.main(arguments)
        return Ran(code, *capsys.readouterr())

    return run


class StreamingModel:
    """What a model says, whatever the protocol: it looks into the memory before each reply, and says so first.

    It is asked for more than replies: what to keep of a turn, how a session is summed up. It counts what it was asked.
    """

    preface, reply, internal, summary = "Let me look.", "Right, noted {}.", "not for the screen", "They spoke of bees."

    def __init__(self, name: str, search: str | None) -> None:
        self.name = name
        self.search = search
        self.replies = self.asides = 0

    def say(self, messages: list[Mapping[str, Any]], *, is_structured: bool) -> tuple[str, str | None]:
        """Return words, and the tool that is called with them."""
        asked = messages[-1]
        if is_structured:
            self.asides += 1
            return json.dumps({"facts": [], "rules": [], "why": self.internal}), None
        if "Summarize the following conversation" in asked["content"]:
            self.asides += 1
            return self.summary, None
        if self.search and asked["role"] == "user":
            return self.preface, self.search
        self.replies += 1
        return self.reply.format(self.replies), None

    def own_replies(self) -> list[str]:
        return [self.reply.format(number) for number in range(1, self.replies + 1)]


@pytest.fixture(params=["ollama", "openai"])
def streaming(request, monkeypatch) -> Callable[[str | None], StreamingModel]:
    """Make a model that streams over one of the protocols and calls the tool `search`; commands find its server."""
    pytest.importorskip(request.param, reason=f"the extra {request.param} is not installed")
    is_ollama = request.param == "ollama"
    fake = request.getfixturevalue("ollama_fake" if is_ollama else "openai_fake")
    server = request.getfixturevalue("ollama_server" if is_ollama else "openai_endpoint")

    def make(search: str | None) -> StreamingModel:
        model = StreamingModel("ollama:qwen3:4b" if is_ollama else "openai:tiny", search)

        def by_ollama(body: Any) -> Any:
            words, tool = model.say(body["messages"], is_structured=bool(body.get("format")))
            return {**(fake.tool_call(tool, query="hives") if tool else {}), "content": words}

        def by_openai(body: Any) -> Any:
            words, tool = model.say(body["messages"], is_structured="response_format" in body)
            pieces = [{"content": words[:4]}, {"content": words[4:]}]
            return pieces + (fake.tool_deltas(tool, json.dumps({"query": "hives"})) if tool else [])

        server.reply = by_ollama if is_ollama else by_openai
        # After what other fixtures unset.
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return model

    return make
