"""The topics target on the real Ollama client, against a faithful fake server: stories, failures, record and replay."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memstory.contract.models import ChatRequest, Message, ToolRequest
from memstory.contract.values import ToolSchema
from memstory.language.stories import load_stories, parse_stories
from memstory.playing import play
from memstory.running.runner import RunOptions
from memstory_reference.adapters.embedding.minilm import MiniLmEmbedder
from memstory_reference.adapters.offline_chat import OfflineChat
from memstory_reference.ports import Purpose
from memstory_reference.targets.topics import TopicsFactory

ROOT = Path(__file__).parents[3]
OLLAMA = {"chat": "ollama:qwen3:4b", "embedder": "ollama:nomic-embed-text"}
KEPT = """
story: K1
title: A fact is kept and found
steps:
  - say: Please remember my preferred language is Elixir.
  - new_session:
  - say: What language do I prefer?
    expect:
      tool_calls: [recall_topic]
      answer: {contains: Elixir}
"""
ASKED = """
story: K2
title: An empty memory is asked
steps:
  - say: What do you remember about Australian geography?
    expect:
      answer: {not: {icontains: Canberra}}
"""


def model_of_rules(embedder: MiniLmEmbedder) -> Any:
    """Let the offline rules speak Ollama's protocol: a model that really uses the tools that it is offered."""

    def reply(body: Any) -> Any:
        messages = [
            Message(
                role=one["role"],
                content=one.get("content", ""),
                tool=one.get("tool_name"),
                tool_requests=[ToolRequest(**call["function"]) for call in one.get("tool_calls") or ()],
            )
            for one in body["messages"]
        ]
        tools = [ToolSchema(**tool["function"]) for tool in body.get("tools") or ()]
        said = asyncio.run(OfflineChat(embedder).chat(ChatRequest(messages, tools)))
        calls = [{"function": {"name": one.name, "arguments": dict(one.arguments)}} for one in said.tool_requests]
        return {"content": said.content, **({"tool_calls": calls} if calls else {})}

    return reply


def embedding_of(embedder: MiniLmEmbedder) -> Any:
    """Let MiniLM stand for the model, whose prefixes and size the vectors take on."""

    def embed(model: Any, text: str) -> list[float]:
        (vector,) = asyncio.run(embedder.embed([text.partition(": ")[2]], Purpose.DOCUMENT))
        return [*vector.astype(float), *([0.0] * (model.dimension - len(vector)))]

    return embed


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)


@pytest.fixture
def server(ollama_server, monkeypatch, minilm_weights):
    """A server whose models understand something; the environment says where it is, as for Ollama itself."""
    embedder = MiniLmEmbedder(minilm_weights)
    ollama_server.reply = model_of_rules(embedder)
    ollama_server.embed = embedding_of(embedder)
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url.removeprefix("http://"))
    return ollama_server


@pytest.fixture
def judged(tmp_path):
    """Run stories on the topics target as the plugin does; return their results by id."""
    count = iter(range(100))

    async def judge(stories, seconds=60.0, **options):
        if isinstance(stories, str):
            stories = parse_stories(stories, "k.yaml")
        results = {}
        for story in stories:
            chosen = RunOptions(target={**OLLAMA, **options}, case_seconds=seconds)
            results[story.id] = await play(story, TopicsFactory(), tmp_path / f"case{next(count)}", options=chosen)
        return results

    return judge


def about(result):
    return result.trials[0].recording.about


async def test_stories_of_recall_and_saving_pass_with_ollama_and_no_other_setting(server, judged):
    files = [ROOT / "stories" / name for name in ("s5_memory_recall.yaml", "s6_memory_save.yaml")]
    stories = [
        story
        for file in files
        for story in load_stories(file, file.name)
        if not {"crash", "restart"} & {step.op for step in story.steps}
    ]
    results = await judged(stories)
    assert {"S5", "S5b", "S5c", "S5d", "S6"} <= set(results)
    assert {one.id: (one.outcome, one.reason) for one in results.values() if one.outcome != "passed"} == {}
    assert about(results["S5"])["chat"] == "ollama:qwen3:4b"
    assert about(results["S5"])["embedder"] == "nomic-embed-text"
    sent = [text for body in server.bodies("/api/embed") for text in body["input"]]
    assert {text.partition(": ")[0] for text in sent} == {"search_document", "search_query"}
    assert all(body["stream"] for body in server.bodies("/api/chat"))


async def test_the_option_says_where_ollama_is_before_the_environment_does(server, judged, monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    (result,) = (await judged(KEPT, ollama_host=server.url)).values()
    assert result.outcome == "passed"


async def test_half_an_answer_is_not_taken_for_one(server, judged):
    server.cut_stream = True
    (result,) = (await judged(KEPT)).values()
    assert result.outcome == "error"
    assert "broke off" in result.reason


@pytest.mark.parametrize(
    ("broken", "options", "said"),
    [
        ({}, {"ollama_host": "http://127.0.0.1:1"}, "Start it with: ollama serve"),
        ({}, {"chat": "ollama:none"}, "ollama pull none"),
        ({}, {"chat": "ollama:gemma3:4b"}, "choose a model that calls them"),
        ({}, {"chat": "ollama:nomic-embed-text"}, "choose a chat model"),
        ({"stream_error": "out of memory"}, {}, "out of memory"),
        ({"fail": (500, "the runner stopped")}, {}, "ollama show"),
    ],
)
async def test_a_broken_chat_model_is_an_error_that_says_what_to_type(server, judged, broken, options, said):
    for name, value in broken.items():
        setattr(server, name, value)
    (result,) = (await judged(KEPT, **options)).values()
    assert (result.outcome, said in result.reason) == ("error", True), result.reason


async def test_a_model_that_is_too_slow_for_the_case_is_an_error_that_says_how_to_give_it_longer(server, judged):
    await judged(KEPT)  # what is imported once is no part of the time
    server.delay_seconds = 20
    (result,) = (await judged(KEPT, seconds=2)).values()
    assert result.outcome == "error"
    assert result.reason.endswith("timed out after 2 s in step 1; --case-timeout allows more")


@pytest.mark.parametrize("story", [KEPT, ASKED])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ollama_host": "http://127.0.0.1:1"}, "Start it with: ollama serve"),
        ({"embedder": "ollama:none"}, "ollama pull none"),
        ({"embedder": "ollama:qwen3:4b"}, "Is qwen3:4b an embedding model?"),
    ],
)
@pytest.mark.usefixtures("server")
async def test_a_story_is_not_judged_by_what_a_broken_embedder_leaves_over(judged, story, options, said):
    (result,) = (await judged(story, chat="offline", **options)).values()
    assert (result.outcome, said in result.reason) == ("error", True), result.reason


@pytest.mark.usefixtures("server")
async def test_an_embedder_that_the_story_breaks_is_judged_all_the_same(judged):
    story = ASKED.replace("steps:", "steps:\n  - fault: {part: embedder, mode: down}")
    (result,) = (await judged(story)).values()
    assert result.outcome == "passed"


async def test_a_recorded_run_is_replayed_without_the_server_and_says_so(server, judged, tmp_path):
    tape = tmp_path / "tapes" / "kept.json"
    (recorded,) = (await judged(KEPT, chat=f"record:ollama:qwen3:4b@{tape}")).values()
    assert (recorded.outcome, about(recorded)["chat"]) == ("passed", "ollama:qwen3:4b")
    asked = len(server.bodies("/api/chat"))
    (replayed,) = (await judged(KEPT, chat=f"replay:{tape}")).values()
    assert (replayed.outcome, about(replayed)["chat"]) == ("passed", "ollama:qwen3:4b (replayed)")
    assert len(server.bodies("/api/chat")) == asked
    said = [[step.result for step in one.trials[0].recording.steps] for one in (recorded, replayed)]
    assert said[0] == said[1]


@pytest.mark.usefixtures("server")
async def test_several_stories_are_recorded_to_one_file(judged, tmp_path):
    tape = tmp_path / "both.json"
    await judged(KEPT + "---" + ASKED, chat=f"record:ollama:qwen3:4b@{tape}")
    results = await judged(ASKED + "---" + KEPT, chat=f"replay:{tape}")
    assert {name: one.outcome for name, one in results.items()} == {"K1": "passed", "K2": "passed"}


@pytest.mark.usefixtures("server")
async def test_a_request_that_was_not_recorded_is_an_error_with_the_nearest_as_a_diff(judged, tmp_path):
    tape = tmp_path / "kept.json"
    await judged(KEPT, chat=f"record:ollama:qwen3:4b@{tape}")
    (result,) = (await judged(KEPT.replace("language is Elixir", "language is Rust"), chat=f"replay:{tape}")).values()
    assert result.outcome == "error"
    shown = result.trials[0].recording.failure.message.splitlines()
    assert "-[user] Please remember my preferred language is Elixir." in shown
    assert "+[user] Please remember my preferred language is Rust." in shown


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        ("replay:none.json", "there is no recording at none.json"),
        ("record:ollama:qwen3:4b", "allowed: record:NAME@FILE"),
        ("record:@x.json", "no chat model named ''"),
        ("record:replay:a@b", "allowed: record:NAME@FILE"),
    ],
)
async def test_a_wrong_recording_is_said_before_anything_runs(server, judged, chat, said):
    (result,) = (await judged(KEPT, chat=chat)).values()
    assert result.outcome in ("error", "invalid")
    assert said in result.reason
    assert server.requests == []


@pytest.mark.slow
@pytest.mark.usefixtures("server")
def test_the_documented_command_needs_only_the_server(tmp_path):
    page = (ROOT / "docs/how-to/ollama.md").read_text("utf-8")
    (command,) = re.findall(r"^python (-m pytest .*)$", page, re.MULTILINE)
    done = subprocess.run(  # noqa: S603  (the command of our own page)
        [sys.executable, *command.split(), "-p", "no:cacheprovider", "--target", "topics", "--report", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert results["summary"]["passed"] >= 6
    assert results["summary"]["failed"] == results["summary"]["error"] == 0
    assert results["fingerprint"]["targets"]["topics"]["chat"] == ["ollama:qwen3:4b"]
