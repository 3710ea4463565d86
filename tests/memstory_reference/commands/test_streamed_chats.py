"""Chats with a model that streams, over both protocols: the screen has each reply once, and no internal JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SEARCH = {
    "topics": "search_memory",
    "observations": "search_memory",
    "manager": "search_memories",
    "pipeline": "recall_memories",
    "turns": "recall",
    "layers": None,
}
"""The tool of each memory that looks into it, by its name."""

LINES = [
    "Yesterday we talked about the bees that are kept in Bergen, and about their old keeper.",
    "Last week we talked about the hives that stand by the fjord behind the house.",
    "We talked about the honey that was sold on the market before winter came.",
]


@pytest.fixture
def chat(typed, streaming) -> Callable[..., Any]:
    """Return what holds a conversation with a model over one of the protocols: the screen, and the model."""

    def hold(system: str, lines: list[str], *options: str) -> tuple[Any, Any]:
        model = streaming(SEARCH[system])
        ran = typed("chat", "--system", system, "--chat", model.name, *options, lines=lines)
        assert (ran.code, ran.err) == (0, "")
        return ran.out, model

    return hold


@pytest.mark.parametrize("system", SEARCH)
def test_the_screen_has_each_streamed_reply_once_and_on_a_line_of_its_own(chat, system):
    out, model = chat(system, LINES)
    assert model.replies == len(LINES)
    # What a tool finds holds earlier replies.
    shown = [line for line in out.splitlines() if "Right, noted" in line and "\u2190" not in line]
    assert shown == model.own_replies()
    assert out.splitlines().count(model.preface) == (len(LINES) if SEARCH[system] else 0)


def test_the_screen_has_nothing_of_what_layers_ask_a_streaming_model(chat):
    out, model = chat("layers", [*LINES, "/end"])
    assert model.asides > len(LINES)
    assert model.internal not in out
    assert "{" not in out


def test_the_screen_has_nothing_of_a_summary_that_the_pipeline_asks_for(chat):
    Path("mine.yaml").write_text("compression_threshold: 1\n", "utf-8")
    lines = [word for line in LINES for word in (line, "/new")]
    out, model = chat("pipeline", lines, "--settings", "mine.yaml")
    assert model.asides > 0
    assert model.summary not in out


def test_the_screen_says_how_many_turns_wait_for_a_model_that_does_not_read_them(
    typed, ollama_fake, ollama_server, monkeypatch
):
    is_down = [True]

    def reply(body: Any) -> Any:
        if body.get("format") and is_down[0]:
            raise ollama_fake.ApiError(503, "overloaded")
        return {"content": '{"facts": [], "rules": []}' if body.get("format") else "Noted."}

    ollama_server.reply = reply
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    command = ("chat", "--system", "layers", "--chat", "ollama:qwen3:4b", "--owner", "ann")
    out = typed(*command, lines=[*LINES[:2], "/status", "/end"]).out
    assert "waiting for the model 2" in out
    assert "not ended" in out
    assert "2 turns" in out
    is_down[0] = False
    read = typed(*command, lines=["It rains.", "/status"]).out
    assert "waiting for the model" not in read.partition("Noted.")[2]
