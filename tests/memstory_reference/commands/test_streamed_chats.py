"""Chats with a model that streams, over both protocols: the screen has each reply once, and no internal JSON.

The model is asked for more than replies: what to keep of a turn, how a session is summed up. It looks into the memory
before each reply, and says so first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ollama", reason="the extra ollama is not installed")
pytest.importorskip("openai", reason="the extra openai is not installed")

SEARCH = {
    "topics": "search_memory",
    "manager": "search_memories",
    "pipeline": "recall_memories",
    "turns": "recall",
    "layers": None,
}
"""The tool of each memory that looks into it, by its name."""

PREFACE, REPLY, INTERNAL, SUMMARY = "Let me look.", "Right, noted {}.", "not for the screen", "A summary, not a reply."
LINES = [
    "Yesterday we talked about the bees that are kept in Bergen, and about their old keeper.",
    "Last week we talked about the hives that stand by the fjord behind the house.",
    "We talked about the honey that was sold on the market before winter came.",
]

Said = tuple[str, str | None]
"""Words, and the tool that is called with them."""


class Model:
    """What a model says, whatever the protocol; it notes for what it was asked."""

    def __init__(self, search: str | None) -> None:
        self.search = search
        self.replies = self.internal = 0

    def say(self, messages: list[Mapping[str, Any]], *, is_structured: bool) -> Said:
        asked = messages[-1]
        if is_structured:
            self.internal += 1
            return json.dumps({"facts": [], "rules": [], "why": INTERNAL}), None
        if "Summarize the following conversation" in asked["content"]:
            self.internal += 1
            return SUMMARY, None
        if self.search and asked["role"] == "user":
            return PREFACE, self.search
        self.replies += 1
        return REPLY.format(self.replies), None


@pytest.fixture(params=["ollama", "openai"])
def chat(request, typed, monkeypatch) -> Callable[..., Any]:
    """Return what holds a conversation with a model over one of the protocols: the screen, and the model."""
    fake = request.getfixturevalue("ollama_fake" if request.param == "ollama" else "openai_fake")
    server = request.getfixturevalue("ollama_server" if request.param == "ollama" else "openai_endpoint")

    def hold(system: str, lines: list[str], *options: str) -> tuple[Any, Model]:
        model = Model(SEARCH[system])

        def by_ollama(body: Any) -> Any:
            words, tool = model.say(body["messages"], is_structured=bool(body.get("format")))
            return {**(fake.tool_call(tool, query="hives") if tool else {}), "content": words}

        def by_openai(body: Any) -> Any:
            words, tool = model.say(body["messages"], is_structured="response_format" in body)
            pieces = [{"content": words[:4]}, {"content": words[4:]}]
            return pieces + (fake.tool_deltas(tool, json.dumps({"query": "hives"})) if tool else [])

        server.reply = by_ollama if request.param == "ollama" else by_openai
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        name = "ollama:qwen3:4b" if request.param == "ollama" else "openai:tiny"
        ran = typed("chat", "--system", system, "--chat", name, *options, lines=lines)
        assert (ran.code, ran.err) == (0, "")
        return ran.out, model

    return hold


@pytest.mark.parametrize("system", SEARCH)
def test_the_screen_has_each_streamed_reply_once_and_on_a_line_of_its_own(chat, system):
    out, model = chat(system, LINES)
    assert model.replies == len(LINES)
    replies = [REPLY.format(number) for number in range(1, len(LINES) + 1)]
    # What a tool finds holds earlier replies.
    shown = [line for line in out.splitlines() if "Right, noted" in line and "←" not in line]
    assert shown == replies
    assert out.splitlines().count(PREFACE) == (len(LINES) if SEARCH[system] else 0)


def test_the_screen_has_nothing_of_what_layers_ask_a_streaming_model(chat):
    out, model = chat("layers", [*LINES, "/end"])
    assert model.internal > len(LINES)
    assert INTERNAL not in out
    assert "{" not in out


def test_the_screen_has_nothing_of_a_summary_that_the_pipeline_asks_for(chat):
    Path("mine.yaml").write_text("compression_threshold: 1\n", "utf-8")
    lines = [word for line in LINES for word in (line, "/new")]
    out, model = chat("pipeline", lines, "--settings", "mine.yaml")
    assert model.internal > 0
    assert SUMMARY not in out
