"""The stand-in has its own embedder: no vectors of a story, in no log, out of reach of faults, and optional."""

from __future__ import annotations

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.models import ChatRequest, Message, ToolRequest
from memstory.contract.target import Environment
from memstory_reference.adapters.embedding import weights
from memstory_reference.composition import chat_models
from memstory_reference.composition.embedders import make_embedder
from memstory_reference.ports import Purpose
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.targets.environment_ports import EnvironmentPorts

QUESTION = "Which musical instrument do I practise?"
FOUND = "[Memory recall — 2026-05-31]\n1. (relevance: 0.50) 2026-05-30 Q: I play the cello. A: I see."


def ports(tmp_path, *, other_embedder=False, **settings) -> EnvironmentPorts:
    vectors = {"query": [1, 0]}
    env = Environment(workspace=str(tmp_path), owner="case.ann", vectors=vectors, other_embedder=other_embedder)
    return EnvironmentPorts(env, LayersSettings(**settings), lambda name, host: make_embedder(name, ollama_host=host))


async def answer(made: EnvironmentPorts) -> str:
    search = ToolRequest(name="search_memory", arguments={"query": QUESTION})
    asked = [
        Message(role="user", content=QUESTION),
        Message(role="assistant", content="", tool_requests=[search]),
        Message(role="tool", content=FOUND, tool="search_memory"),
    ]
    return (await made.chat.chat(ChatRequest(asked))).content


async def test_stand_in_compares_texts_that_have_no_vector_in_the_story(tmp_path):
    made = ports(tmp_path)
    assert "cello" in await answer(made)
    assert made.embedder.data()["calls"] == 0


async def test_stand_in_compares_while_the_memorys_embedder_is_down(tmp_path):
    made = ports(tmp_path)
    made.set_fault("embedder", "down")
    assert "cello" in await answer(made)
    with pytest.raises(Exception, match="embedder"):
        await made.embedder.embed(["query"], Purpose.QUERY)


async def test_stand_in_goes_by_words_where_nothing_may_be_embedded(tmp_path):
    assert "don't know" in await answer(ports(tmp_path, embedding_model="none"))


async def test_stand_in_goes_by_words_where_there_are_no_weights(tmp_path, monkeypatch):
    def find(folder):
        raise SetupError(f"no weights in {folder}")

    monkeypatch.setattr(weights, "find_weights", find)
    chat_models._minilm.cache_clear()
    assert "don't know" in await answer(ports(tmp_path))


async def test_another_embedder_has_another_name_and_vectors_of_the_same_length(tmp_path):
    other = ports(tmp_path, other_embedder=True).embedder
    assert (other.model, other.dimension) == ("other-fixed-2", 2)
    assert (await other.embed(["query"], Purpose.QUERY)).tolist() == [[0, 1]]


async def test_calls_of_a_model_are_counted_and_those_of_the_stand_in_are_not(tmp_path):
    assert ports(tmp_path).counted.use is None
    env = Environment(workspace=str(tmp_path), owner="ann", vectors={"q": [1, 0]}, model_rules=[{"reply": "Hi."}])
    made = EnvironmentPorts(env, LayersSettings(), lambda name, host: make_embedder(name, ollama_host=host))
    await made.chat.chat(ChatRequest([Message(role="user", content="Hello")]))
    assert (made.counted.use.calls, made.counted.use.prompt_tokens, made.counted.use.failed) == (1, None, 0)
